"""Writes empty libraries in place of the CUDA libraries that torch is linked to.

    stub_cuda.py FOLDER

The torch wheel for Linux is built for CUDA: it cannot be imported without a
dozen libraries (2 GB of wheels) that it never calls on a CPU. A library of the
right name that has the symbols torch links to is enough for the loader.
libcudart is not made here, since torch does call it, to be told that there is
no device: it comes as its own wheel (2 MB).
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import defaultdict


def output(*command: object) -> str:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


def main(folder: pathlib.Path, scratch: str) -> None:
    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
    libraries = list(torch.glob("*.so*"))
    needed, symbols = set(), defaultdict(set)
    for library in libraries:
        needed.update(re.findall(r"\(NEEDED\).*\[(lib(?:cu|nv|nccl).*)\]", output("readelf", "-dW", library)))
        for line in output("nm", "-D", "--undefined-only", library).splitlines():
            name, _, version = line.split()[-1].partition("@")
            symbols[version].add(name)
    needed -= {library.name for library in libraries} | {"libcudart.so.13"}

    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(needed):
        # CUDA libraries use their own file name as the version of their symbols, or none.
        version = "NVSHMEM" if name.startswith("libnvshmem") else name
        prefix = re.match(r"lib([a-zA-Z]+)", name)[1].lower()
        loose = {s for s in symbols[""] if s.lower().startswith(prefix) or (prefix == "cuda" and re.match("cu[A-Z]", s))}
        source, script = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
        source.write_text("".join(f"int {s}(void) {{ return 1; }}\n" for s in sorted(symbols[version] | loose)))
        command = ["cc", "-w", "-shared", "-fPIC", source, "-o", folder / name, f"-Wl,-soname,{name}"]
        if symbols[version]:
            script.write_text(f"{version} {{ {' '.join(s + ';' for s in sorted(symbols[version]))} }};\n")
            command.append(f"-Wl,--version-script={script}")
        output(*command)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch_folder:
        main(pathlib.Path(sys.argv[1]), scratch_folder)
