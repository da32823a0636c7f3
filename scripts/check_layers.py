#!/usr/bin/env python3
"""Keeps the order of the folders of src/: who may include whom, and who may see which library.

Usage: check_layers.py [ROOT]     (default: the repository this file is in)

Prints one line per violation, as FILE:LINE: what is wrong, and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

# The folders that a folder may use. `cli` is the composition root and may use all.
ALLOWED = {
    "base": "",
    "core": "base",
    "net": "base",
    "store": "base core net",
    "data": "base core store",
    "schedule": "base core",
    "collective": "base core store schedule",
    "planner": "base core",
    "sim": "base core schedule",
    "platform": "base core net",
    "runtime": "base core store data schedule collective",
    "nn": "base core data runtime",
    "profile": "base core store data collective platform nn",
    "coordinator": "base core store data platform",
    "report": "base core schedule planner sim",
}
ALLOWED = {folder: set(others.split()) for folder, others in ALLOWED.items()}
ALLOWED["cli"] = set(ALLOWED)

# Debian puts these headers into /usr/include, so that CMake cannot fence them off.
FENCED = [
    ("libtorch", re.compile(r"(torch|ATen|c10|caffe2)/"), re.compile(r"src/nn/[^/]+\.cc$"), "src/nn/*.cc"),
    ("libcurl and OpenSSL", re.compile(r"(curl|openssl)/"), re.compile(r"src/net/"), "src/net"),
    ("Boost.Beast", re.compile(r"boost/beast"), re.compile(r"src/net/"), "one file of src/net"),
]
# Configuration comes in through arguments; the environment is read in src/cli. The exceptions:
MAY_READ_ENVIRONMENT = {
    "src/platform/testing_worker.cc": "a test's worker, which reports the environment it was given",
}
MAX_LINES = 500

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")
# Strings are matched so that a // within one does not look like a comment.
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CMAKE_CALL = re.compile(r"\b(funcpipe_module|funcpipe_test)\s*\(\s*(\w+)([^)]*)\)")
CMAKE_KEYWORDS = {"SOURCES", "DEPS", "LIBS", "TIMEOUT", "LABELS"}


def without_comments(text):
    """The text with every comment blanked; lines keep their numbers."""

    def blank(match):
        found = match.group()
        return found if found.startswith('"') else "\n" * found.count("\n")

    return COMMENT_OR_STRING.sub(blank, text)


def check_source(path, text):
    """Yields (line, message) for one C++ file; `path` is relative to the root, with slashes."""
    parts = path.split("/")
    folder = parts[1] if parts[0] == "src" and len(parts) > 2 else None
    lines = without_comments(text).split("\n")
    if text.count("\n") > MAX_LINES:
        yield text.count("\n"), f"more than {MAX_LINES} lines; split the file"
    for number, line in enumerate(lines, 1):
        if include := INCLUDE.match(line):
            for message in check_include(path, folder, *include.groups()):
                yield number, message
        elif GETENV.search(line) and folder not in (None, "cli") and path not in MAY_READ_ENVIRONMENT:
            yield number, "reads the environment; only src/cli does"


def check_include(path, folder, quote, header):
    for library, pattern, where, name in FENCED:
        if folder and pattern.match(header) and not where.match(path):
            yield f"includes <{header}>: {library} is for {name} only"
    if quote == "<":
        return
    if "/" not in header:
        yield f'includes "{header}"; write it with its folder, as "base/error.h"'
        return
    target = header.split("/")[0]
    if target not in ALLOWED:
        yield f'includes "{header}", of a folder that is not in the table'
    elif folder in ALLOWED and target != folder and target not in ALLOWED[folder]:
        yield f"src/{folder} must not include src/{target}"


def cmake_deps(text):
    """Yields (line, function, folder, deps) for every funcpipe_module and funcpipe_test."""
    text = re.sub(r"#[^\n]*", "", text)
    for call in CMAKE_CALL.finditer(text):
        deps, keyword = [], None
        for word in call.group(3).split():
            if word in CMAKE_KEYWORDS:
                keyword = word
            elif keyword == "DEPS":
                deps.append(word)
        yield text.count("\n", 0, call.start()) + 1, call.group(1), call.group(2), deps


def check_cmake(folder, used, text):
    """Yields (line, message) for a folder's CMakeLists.txt; `used` are the folders it includes."""
    for line, function, name, deps in cmake_deps(text):
        if function == "funcpipe_module" and name != folder:
            yield line, f"defines module {name}, is in folder {folder}"
        for dep in deps:
            if dep not in ALLOWED:
                yield line, f"depends on {dep}, which is not in the table"
            elif dep != folder and dep not in ALLOWED[folder]:
                yield line, f"src/{folder} must not depend on src/{dep}"
        if function == "funcpipe_module":
            for dep in sorted(used - set(deps) - {folder}):
                yield line, f"includes headers of src/{dep}, but DEPS does not name it"


def used_folders(folder):
    """The folders whose headers the module's own sources (not its tests) rightly include."""
    used = set()
    for path in folder.iterdir():
        if path.suffix in (".cc", ".h") and "_test" not in path.stem:
            for line in without_comments(path.read_text(encoding="utf-8")).split("\n"):
                if (include := INCLUDE.match(line)) and include.group(1) == '"':
                    used.add(include.group(2).split("/")[0])
    return used & ALLOWED[folder.name]


def check_folder(folder):
    """Yields printable lines for one folder of src/."""
    if folder.name not in ALLOWED:
        yield f"src/{folder.name}: a folder that is not in the table of {Path(__file__).name}"
    elif (cmake := folder / "CMakeLists.txt").exists():
        for line, message in check_cmake(folder.name, used_folders(folder), cmake.read_text()):
            yield f"src/{folder.name}/CMakeLists.txt:{line}: {message}"


def check(root):
    """All violations under `root`, as printable lines."""
    found = [line for folder in sorted(root.glob("src/*/")) for line in check_folder(folder)]
    beast_users = []
    for path in sorted(p for top in ("src", "tests", "bench") for p in root.glob(f"{top}/**/*")):
        if path.suffix not in (".cc", ".h"):
            continue
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        found += [f"{name}:{line}: {message}" for line, message in check_source(name, text)]
        if name.startswith("src/") and re.search(r"^\s*#\s*include\s*<boost/beast", text, re.MULTILINE):
            beast_users.append(name)
    if len(beast_users) > 1:
        found.append(f"{', '.join(beast_users)}: Boost.Beast is for one file only (36 s to compile)")
    return found


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = check(root)
    for line in found:
        print(line)
    if found:
        sys.exit(f"{len(found)} violations of the layers (scripts/check_layers.py has the table)")


if __name__ == "__main__":
    main()
