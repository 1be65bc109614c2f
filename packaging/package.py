#!/usr/bin/env python3
"""package.py CHECKOUT BUILD OUT: a .deb, a relocatable tarball and a wheel out of one portable build, the same bytes each time.

BUILD is a build with RANGESCOPE_PORTABLE (`./dev package` makes it). Before anything is packed, what was built is held to
its floors: the newest symbol version of glibc that it asks for, and the libraries that it needs. Times inside are
those of SOURCE_DATE_EPOCH, else of the commit. OUT gets the artifacts, SHA256SUMS and an SBOM (SPDX 2.3, JSON).
Exit code: 0, or 1 with the reason.
"""
import base64
import csv
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

# What the injected libraries may ask for, since they are loaded into programs of any age, and what the command may.
FLOORS = {"librangescope_inject.so": (2, 28), "librangescope_mpi.so": (2, 28), "rangescope": (2, 28)}
LIBC = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux-[a-z0-9-]+)\.so\.\d+$")
# Statically linked: Debian's package, its licence (SPDX).
INSIDE = {"libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1", "libgcc-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
          "libfmt-dev": "MIT", "libsimdjson-dev": "Apache-2.0", "libyaml-cpp-dev": "MIT", "libsqlite3-dev": "blessing",
          "libre2-dev": "BSD-3-Clause", "libzstd-dev": "BSD-3-Clause", "zlib1g-dev": "Zlib", "libdw-dev": "LGPL-3.0-or-later",
          "libelf-dev": "LGPL-3.0-or-later", "libiberty-dev": "LGPL-2.1-or-later",
          "liblzma-dev": "0BSD", "libbz2-dev": "bzip2-1.0.6", "nlohmann-json3-dev": "MIT", "libcli11-dev": "BSD-3-Clause",
          "libeigen3-dev": "MPL-2.0", "libprotozero-dev": "BSD-2-Clause", "libexpected-dev": "CC0-1.0"}
FROM_SOURCE = {"libfmt-dev": "fmtlib", "libsimdjson-dev": "simdjson"}  # of sources.txt, without patches
ENTRY_POINTS = b"[pytest11]\nrangescope.pytest_plugin = rangescope.pytest_plugin\n"
SUMMARY = "what each range of a GPU program costs, and why"


class Failed(Exception):
    pass


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def glibc_needed(binary, objdump="objdump"):
    """The newest GLIBC version among the symbols of an ELF file, (major, minor), and the libraries that it names."""
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", output(objdump, "-T", str(binary)))}
    libraries = re.findall(r"NEEDED\s+(\S+)", output(objdump, "-p", str(binary)))
    return max(v[:2] for v in versions), libraries


def hold_to_floor(binary, objdump="objdump"):
    """What glibc_needed() gives; Failed where the file asks for more than every machine has."""
    floor = FLOORS[binary.name]
    needed, libraries = glibc_needed(binary, objdump)
    foreign = [library for library in libraries if not LIBC.match(library)]
    if needed > floor:
        raise Failed(f"{binary.name} asks for glibc {needed[0]}.{needed[1]}, above {floor[0]}.{floor[1]}")
    if foreign:
        raise Failed(f"{binary.name} needs {', '.join(foreign)}, which not every machine has")
    print(f"{binary.name}: glibc {needed[0]}.{needed[1]}, {len(libraries)} libraries, all of libc")
    return needed


def hold_to_floors(tree, objdump):
    newest = (0, 0)
    for name in FLOORS:
        binary = next(p for p in sorted(tree.rglob(name)) if p.is_file() and not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF")
        newest = max(newest, hold_to_floor(binary, objdump))
    return newest


def install(build, tree, prefix):
    """What `cmake --install` places, stripped, below tree/prefix."""
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["cmake", "--install", str(build), "--strip", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DESTDIR": str(tree)})
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def linked_version(package, arch):
    """Of what is inside: as sources.txt fetches it, else as it is installed; for another architecture as the cross compiler brings it."""
    sources = (pathlib.Path(__file__).parent / "sources.txt").read_text()
    here, names = output("dpkg", "--print-architecture").strip(), [package]
    file = rf"/{FROM_SOURCE[package]}_(\S+)\.orig\.tar" if package in FROM_SOURCE else rf"/{re.escape(package)}_(\S+)_{arch}\.deb "
    if fetched := re.search(file, sources):
        return fetched.group(1)
    if arch != here:
        names.insert(0, f"{package}-{arch}-cross")
    for name in names:
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Architecture} ${Version}\n", name], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        for line in found.stdout.splitlines():
            of, _, version = line.partition(" ")
            if version and of in (here, "all"):
                return version
    return None


def licences(tree_doc):
    """Each package's own copyright file, beside LICENSE."""
    into = tree_doc / "licences"
    into.mkdir(parents=True, exist_ok=True)
    for package in INSIDE:
        source = pathlib.Path("/usr/share/doc") / package / "copyright"
        if not source.exists():
            raise Failed(f"{source} is missing: is {package} installed?")
        text = source.read_bytes()
        (into / f"{package}.txt").write_bytes(text)
        (into / f"{package}.txt").chmod(0o644)


def sbom(version, arch, epoch, artifacts):
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    packages = [{"SPDXID": "SPDXRef-rangescope", "name": "rangescope", "versionInfo": version, "licenseDeclared": "Apache-2.0",
                 "licenseConcluded": "Apache-2.0", "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-rangescope"}]
    for package, licence in INSIDE.items():
        ident = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        packages.append({"SPDXID": ident, "name": package, "versionInfo": linked_version(package, arch), "licenseDeclared": licence,
                         "licenseConcluded": licence, "downloadLocation": f"https://packages.debian.org/bookworm/{package}",
                         "copyrightText": "NOASSERTION", "filesAnalyzed": False})
        relations.append({"spdxElementId": "SPDXRef-rangescope", "relationshipType": "STATIC_LINK", "relatedSpdxElement": ident})
    files = []
    for index, artifact in enumerate(artifacts):
        files.append({"SPDXID": f"SPDXRef-file-{index}", "fileName": "./" + artifact.name, "licenseConcluded": "NOASSERTION",
                      "copyrightText": "NOASSERTION",
                      "checksums": [{"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), artifact.read_bytes()).hexdigest()}
                                    for kind in ("SHA1", "SHA256")]})
        relations.append({"spdxElementId": f"SPDXRef-file-{index}", "relationshipType": "GENERATED_FROM",
                          "relatedSpdxElement": "SPDXRef-rangescope"})
    names = hashlib.sha256("".join(f["checksums"][1]["checksumValue"] for f in files).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"rangescope-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/rangescope-{version}-{names[:32]}",
            "creationInfo": {"created": when, "creators": ["Tool: packaging/package.py"]},
            "packages": packages, "files": files, "relationships": relations}


def tarball(tree, name, epoch, path):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in sorted([tree, *tree.rglob("*")]):
            relative = member.relative_to(tree)
            info = tar.gettarinfo(str(member), arcname=str(pathlib.PurePosixPath(name) / relative))
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mtime = epoch
            if info.isreg():
                with member.open("rb") as source:
                    tar.addfile(info, source)
            else:
                tar.addfile(info)
    with path.open("wb") as out, gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=epoch, compresslevel=9) as packed:
        packed.write(raw.getvalue())


def deb(tree, version, arch, glibc, epoch, path):
    """tree holds usr/...; dpkg-deb writes the archive, with the times of SOURCE_DATE_EPOCH."""
    control = tree / "DEBIAN"
    control.mkdir()
    size = sum(p.stat().st_size for p in tree.rglob("*") if p.is_file() and not p.is_symlink()) // 1024
    (control / "control").write_text(
        f"Package: rangescope\nVersion: {version}\nSection: devel\nPriority: optional\nArchitecture: {arch}\n"
        f"Maintainer: The rangescope authors <maintainers@rangescope.invalid>\nInstalled-Size: {size}\n"
        f"Depends: libc6 (>= {glibc[0]}.{glibc[1]})\nSuggests: python3\n"
        f"Description: {SUMMARY}\n Runs any command once and reports, for each range path of its NVTX ranges (or for the whole\n"
        " program without any), time, GPU kernels, hardware counters, the CPU's side, the other ranks, what\n limits it and what to try.\n")
    (control / "md5sums").write_text("".join(
        f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(tree)}\n" for p in sorted((tree / "usr").rglob("*")) if p.is_file()))
    for file in control.iterdir():
        file.chmod(0o644)
    # What Python wrote beside its modules is nobody else's to remove.
    (control / "prerm").write_text("#!/bin/sh\nset -e\nrm -rf /usr/share/rangescope/python/rangescope/__pycache__ "
                                   "/usr/lib/python3/dist-packages/rangescope/__pycache__\n")
    (control / "prerm").chmod(0o755)
    control.chmod(0o755)
    for p in [tree, *tree.rglob("*")]:
        os.utime(p, (epoch, epoch), follow_symlinks=False)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(path)], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})


def package_files(checkout):
    """(place below the package's folder, file): what `cmake --install` places in share/rangescope/python too."""
    package = checkout / "python/rangescope"
    return [(path.relative_to(package), path) for path in sorted(package.rglob("*"))
            if path.is_file() and path.parent.name not in ("__pycache__", ".mypy_cache")]


def wheel(tree, checkout, version, tag, epoch, out):
    """The installed tree as data of the environment (bin, lib, share), the package rangescope beside it."""
    name = f"rangescope-{version}"
    members = {f"rangescope/{place}": (0o644, path.read_bytes()) for place, path in package_files(checkout)}
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            members[f"{name}.data/data/{path.relative_to(tree)}"] = (mode, path.read_bytes())
    info = f"{name}.dist-info"
    members[f"{info}/METADATA"] = (0o644, (
        f"Metadata-Version: 2.1\nName: rangescope\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n").encode()
        + (checkout / "README.md").read_bytes())
    members[f"{info}/entry_points.txt"] = (0o644, ENTRY_POINTS)
    members[f"{info}/WHEEL"] = (0o644, f"Wheel-Version: 1.0\nGenerator: packaging/package.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for member, (_, data) in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([member, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    members[f"{info}/RECORD"] = (0o644, record.getvalue().encode())
    path = out / f"{name}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, (mode, data) in members.items():
            entry = zipfile.ZipInfo(member, time.gmtime(max(epoch, 315532800))[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: package.py CHECKOUT BUILD OUT")
    checkout, build, out = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    version = re.search(r"project\(rangescope VERSION ([0-9.]+)", (checkout / "CMakeLists.txt").read_text()).group(1)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "-C", str(checkout), "log", "-1", "--format=%ct"))
    system = next((build / "CMakeFiles").glob("*/CMakeSystem.cmake")).read_text()
    machine = re.search(r'CMAKE_SYSTEM_PROCESSOR "(\w+)"', system).group(1)
    objdump = re.search(r"^CMAKE_OBJDUMP:\w+=(\S+)", (build / "CMakeCache.txt").read_text(), re.MULTILINE).group(1)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    work = out / "work"

    tree = work / "tree"
    install(build, tree, "/")
    glibc = hold_to_floors(tree, objdump)
    doc = tree / "share/doc/rangescope"
    licences(doc)
    for page in ("README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copyfile(checkout / page, doc / page)
    shutil.copytree(checkout / "docs/manual", doc / "manual")
    name = f"rangescope-{version}-linux-{machine}"
    tarball(tree, name, epoch, out / f"{name}.tar.gz")
    wheel(tree, checkout, version, f"py3-none-manylinux_{glibc[0]}_{max(glibc[1], 17)}_{machine}", epoch, out)

    root = work / "deb"
    (root / "usr").mkdir(parents=True)
    shutil.copytree(tree, root / "usr", dirs_exist_ok=True, symlinks=True)
    module = root / "usr/lib/python3/dist-packages/rangescope"
    for place, path in package_files(checkout):
        (module / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, module / place)
    info = module.parent / f"rangescope-{version}.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: rangescope\nVersion: {version}\n")
    (info / "entry_points.txt").write_bytes(ENTRY_POINTS)
    for page in sorted((root / "usr/share/man").rglob("*.1")):
        with (page.parent / (page.name + ".gz")).open("wb") as target, gzip.GzipFile("", "wb", 9, target, epoch) as packed:
            packed.write(page.read_bytes())
        page.unlink()
    shutil.copyfile(doc / "LICENSE", root / "usr/share/doc/rangescope/copyright")
    deb(root, version, arch, glibc, epoch, out / f"rangescope_{version}_{arch}.deb")
    shutil.rmtree(work)

    artifacts = sorted(out.iterdir())
    (out / f"rangescope-{version}.spdx.json").write_text(json.dumps(sbom(version, arch, epoch, artifacts), indent=1) + "\n")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums), end="")


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"package: error: {why}")
