"""The tree keeps its own rules: who may include whom; what the docs name."""
import glob
import json
import os
import re
import shlex
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build/release")

# Which rooms' headers a room gets (style: the rooms stand on one another).
STANDS_ON = {
    "base": set(),
    "hlo": {"base"}, "thunk": {"base"}, "devlib": set(),
    "frontend": {"base", "hlo"},
    "passes": {"base", "hlo", "devlib"},
    "plan": {"base", "hlo", "thunk"},
    "target": {"base", "hlo", "plan", "thunk", "devlib"},
    "xpu": {"base", "thunk"},
}


def command(room):
    with open(os.path.join(BUILD, "compile_commands.json")) as f:
        for entry in json.load(f):
            if f"/src/{room}/" in os.path.join(entry["directory"],
                                               entry["file"]) \
                    and entry["file"].endswith(".c") \
                    and f"lib{room}.a.p" in entry["command"]:
                return shlex.split(entry["command"]), entry["directory"]
    raise AssertionError(f"no source of {room} is compiled")


def compiles(room, header, tmp_path):
    args, where = command(room)
    source = tmp_path / "probe.c"
    source.write_text(f'#include "{header}"\n')
    includes = [a for a in args if a.startswith(("-I", "-D", "-std"))]
    r = subprocess.run([args[0] if "ccache" not in args[0] else "cc",
                        *includes, "-fsyntax-only", str(source)],
                       cwd=where, capture_output=True, text=True)
    return r.returncode == 0


@pytest.mark.parametrize("room", STANDS_ON)
def test_a_room_gets_only_the_headers_it_stands_on(room, tmp_path):
    for other in STANDS_ON:
        if other == room:
            continue
        got = compiles(room, f"{other}.h", tmp_path)
        assert got == (other in STANDS_ON[room]), f"{room} includes {other}.h"


def test_emitters_do_not_see_the_device():
    """plan_tile decides for a device; emitters write down what it says."""
    folder = os.path.join(TOP, "src/target")
    names = [n for n in os.listdir(folder) if n.startswith("emit")]
    assert len(names) > 20
    for name in names:
        text = open(os.path.join(folder, name)).read()
        found = re.search(r"device_desc|\bDEVICE_\w+|[>.]dev\b", text)
        assert not found, f"{name}: {found.group()}"


def test_every_header_compiles_alone():
    rooms = [f"-I{top}/src/{r}" for r in STANDS_ON
             for top in (TOP, BUILD)]  # some are generated
    for room in STANDS_ON:
        folder = os.path.join(TOP, "src", room)
        for h in os.listdir(folder):
            # dl_la.h and its like are device code for clang, written for a
            # type that the file which includes them names.
            if h.endswith(".h") and not h.startswith("dl_"):
                r = subprocess.run(
                    ["cc", "-std=gnu17", "-D_GNU_SOURCE", *rooms,
                     f"-I{TOP}/src", "-I/usr/lib/llvm-22/include",
                     "-fsyntax-only", "-x", "c", os.path.join(folder, h)],
                    capture_output=True, text=True)
                assert r.returncode == 0, r.stderr


def test_architecture_names_what_exists():
    text = open(os.path.join(TOP, "docs/architecture.md")).read()
    paths = set(re.findall(r"`((?:src|plugin|python|tools|tests|docs|abi)/"
                           r"[\w./-]+)`", text))
    assert len(paths) > 20
    for path in paths:
        assert os.path.exists(os.path.join(TOP, path)), path
    calls = re.findall(r"`(\w+)` in `([\w/.-]+\.[ch])`", text)
    assert len(calls) > 10
    for name, path in calls:
        source = open(os.path.join(TOP, path)).read()
        assert re.search(rf"\b{name}\b\s*\(", source), f"{name} in {path}"


PAGES = [os.path.join(TOP, name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + \
    sorted(glob.glob(os.path.join(TOP, "docs/**/*.md"), recursive=True))


def read(path):
    with open(path) as f:
        return f.read()


def anchors(path):
    """As GitHub makes them of headings."""
    heads = re.findall(r"^#+ (.*)$", read(path), re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=os.path.basename)
def test_links_of_a_page_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        name, _, anchor = link.partition("#")
        to = os.path.join(os.path.dirname(page), name) if name else page
        assert link.startswith("https://") or os.path.exists(to), link
        assert not anchor or anchor in anchors(to), link


@pytest.mark.parametrize("page", PAGES, ids=os.path.basename)
def test_a_page_names_what_exists(page):
    """Files in the tree, targets of make, settings."""
    text = read(page)
    is_old = page.endswith("CHANGELOG.md")
    for path in re.findall(r"`((?:src|plugin|python|tools|tests|docs|abi|bench|examples)/[\w./*-]+)`", text):
        assert is_old or glob.glob(os.path.join(TOP, path)), path
    targets = re.findall(r"^([\w-]+):", read(os.path.join(TOP, "Makefile")), re.M)
    for target in re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, re.M):
        assert target in targets, f"make {target}"
    for setting in re.findall(r"\bSUNDOG_[A-Z0-9_]+", text):
        assert setting in settings(), setting


def settings():
    """Of src/base/options.def, with their defaults."""
    rows = re.findall(r'^OPTION\(\w+, +"(\w+)".*?"([^"]*)", +"', read(os.path.join(TOP, "src/base/options.def")), re.M)
    return dict(rows)


def test_the_page_of_settings_has_each_with_its_default():
    page = read(os.path.join(TOP, "docs/settings.md"))
    said = {}
    for names, default in re.findall(r"^\| (`[A-Z].*?)\|(.*?)\|", page, re.M):
        for name in re.findall(r"`(\w+)`", names):
            said[name] = default.strip("` ")
    assert said == settings()


def test_the_page_of_messages_is_what_the_sources_say():
    r = subprocess.run(["python3", os.path.join(TOP, "tools/gen_errors.py"),
                        "check"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr


def test_all_say_the_same_version():
    says = {"meson.build": r"version: '(.*?)'",
            "src/base/base.h": r'#define SD_VERSION "(.*)"',
            "python/sundog/__init__.py": r'__version__ = "(.*)"',
            "CHANGELOG.md": r"## ([0-9.]+)"}
    versions = set()
    for path, pattern in says.items():
        with open(os.path.join(TOP, path)) as f:
            versions.add(re.search(pattern, f.read()).group(1))
    assert len(versions) == 1, versions
