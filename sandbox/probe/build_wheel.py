"""Inside the sandbox, without a network: unpack a source archive or copy a clone, and tell what its
build requires or build its wheel by the hooks of PEP 517. Stands alone; for any Python from 3.6.
"""

import importlib
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile


def main():
    """Do what `job.json` says: without a back end in it, only hand out the project's settings."""
    with open("job.json") as stream:
        job = json.load(stream)
    out = os.path.abspath("out")
    os.mkdir(out)
    os.chdir(unpack(job["source"]))
    if "backend" in job:
        build(job, out)
    elif os.path.isfile("pyproject.toml"):
        shutil.copyfile("pyproject.toml", os.path.join(out, "pyproject.toml"))


def unpack(name):
    """The folder of the sources, which a build may write to."""
    if os.path.isdir(name):
        return shutil.copytree(name, "source", symlinks=True)
    archive = zipfile.ZipFile(name) if name.endswith(".zip") else tarfile.open(name)
    with archive:
        archive.extractall("source")
    inside = [os.path.join("source", name) for name in os.listdir("source")]
    return inside[0] if len(inside) == 1 and os.path.isdir(inside[0]) else "source"


def build(job, out):
    """Make the wheel, or list what the back end requires beyond what it was given."""
    sys.path[:1] = [os.path.abspath(path) for path in job["path"]]
    module, _, attribute = job["backend"].partition(":")
    backend = importlib.import_module(module)
    for name in attribute.split(".") if attribute else ():
        backend = getattr(backend, name)
    ask = getattr(backend, "get_requires_for_build_wheel", list)
    more = [str(requirement) for requirement in ask() if str(requirement) not in job["known"]]
    if more:
        with open(os.path.join(out, "requires.json"), "w") as stream:
            json.dump(more, stream)
    else:
        mend_versions(os.path.join(out, backend.build_wheel(out)))


OPEN_END = re.compile(rb"^(Requires-Dist:[^;\n]*?\d)\.(?=[ ,);\r\n])", re.MULTILINE)


def mend_versions(path):
    """Take the dot from the end of a version that the wheel requires (">=3."): the tools of its day
    read it, and those of today refuse the whole wheel.
    """
    with zipfile.ZipFile(path) as wheel:
        rows = [(row, wheel.read(row)) for row in wheel.infolist()]
    mended = []
    for row, data in rows:
        text, count = data, int(row.filename.endswith(".dist-info/METADATA"))
        while count:
            text, count = OPEN_END.subn(rb"\1", text)
        mended.append((row, text))
    if mended != rows:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for row, data in mended:
                wheel.writestr(row, data)


if __name__ == "__main__":
    main()
