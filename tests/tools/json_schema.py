"""A small validator of JSON Schema: type, enum, const, required, properties, additionalProperties, items, minItems, maxItems,
minimum, anyOf and local $ref. A keyword that it does not know is an error, so that a schema cannot promise what nobody checks."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const", "required", "properties",
         "additionalProperties", "items", "minItems", "maxItems", "minimum", "anyOf"}


def of_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return (isinstance(value, int) or isinstance(value, float) and value.is_integer()) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def errors(value, schema, root=None, at="$"):
    """A list of `place: what is wrong`, empty when value is as schema says."""
    root = schema if root is None else root
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{at}: the schema uses {sorted(unknown)}"]
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return errors(value, target, root, at)
    found = []
    if "anyOf" in schema:
        tries = [errors(value, each, root, at) for each in schema["anyOf"]]
        if all(tries):
            found += min(tries, key=len)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(of_type(value, name) for name in names):
            return found + [f"{at}: {value!r} is no {' or '.join(names)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if "minimum" in schema and isinstance(value, (int, float)) and value < schema["minimum"]:
        found.append(f"{at}: {value} is less than {schema['minimum']}")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            if name in properties:
                found += errors(member, properties[name], root, f"{at}.{name}")
            elif schema.get("additionalProperties", True) is False:
                found.append(f"{at}: {name} is not in the schema")
            elif isinstance(schema.get("additionalProperties"), dict):
                found += errors(member, schema["additionalProperties"], root, f"{at}.{name}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
            found.append(f"{at}: {len(value)} elements")
        for i, member in enumerate(value):
            found += errors(member, schema.get("items", {}), root, f"{at}[{i}]")
    return found
