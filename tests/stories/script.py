"""A script that parses and adds up."""
import json


def parse(lines):
    return [json.loads(line) for line in lines]


def total(rows):
    out = 0
    for row in rows:
        for value in row["values"]:
            out += value * value % 7
    return out


def main():
    lines = [json.dumps({"values": list(range(200))}) for _ in range(500)]
    for _ in range(20):
        rows = parse(lines)
        total(rows)


main()
