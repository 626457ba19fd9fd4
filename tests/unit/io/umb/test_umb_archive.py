"""The archives that UMB files are, made to do harm: refused, each for its own reason."""

import gzip
import lzma
import tarfile

import pytest

import prudent
from prudent.io.umb.archive import unpacked


def tar(*members: tarfile.TarInfo, content: bytes = b"", form: int = tarfile.USTAR_FORMAT) -> bytes:
    return b"".join(m.tobuf(form) + content + bytes(-len(content) % 512) for m in members) + bytes(1024)


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.size, found.type = size, kind
    for key, value in more.items():
        setattr(found, key, value)
    return found


EXTENDED = tar(member("p", size=10, kind=tarfile.XHDTYPE), content=b"10 size=-\n")[:-1024]
GREEDY = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}]


HARM = [
    (b"", "is cut short, or is not a tar file"),
    (b"nothing of the kind", "is not a tar file, or is damaged at byte 0"),
    (tar(member("/etc/passwd")), "'/etc/passwd': is not the name of a member"),
    (tar(member("a/../b")), "not the name of a member"),
    (tar(member("a\\b")), "not the name of a member"),
    (tar(member("a", kind=tarfile.SYMTYPE, linkname="b")), "a: is neither a plain file nor a folder"),
    (tar(member("a", kind=tarfile.LNKTYPE, linkname="b")), "neither a plain file"),
    (tar(member("a", kind=tarfile.FIFOTYPE)), "neither a plain file"),
    (tar(member("a", kind=tarfile.GNUTYPE_SPARSE)), "neither a plain file"),
    (tar(member("a"), member("./a")), "a: appears twice"),
    (tar(member("a", size=10**11), form=tarfile.GNU_FORMAT), "its header declares 100000000000 bytes, but only 1,024"),
    (tar(member("a", size=-1), form=tarfile.GNU_FORMAT), "a: its header declares -1 bytes"),
    (tar(member("a"))[:512], "is cut short"),
    (tar(member("a"))[:512] + b"x" * 512, "damaged at byte 512"),
    (tar(member("p", size=5, kind=tarfile.XHDTYPE), content=b"9 a=b"), "extended header"),
    (tar(member("p", size=5, kind=tarfile.XHDTYPE), content=b"0 a=\n"), "extended header"),
    (tar(member("p", size=17, kind=tarfile.XHDTYPE), content=b"17 GNU.sparse=1\n\n"), "extended header"),
    (EXTENDED + tar(member("a")), "damaged at byte 1,024"),
    (gzip.compress(bytes(2**25), mtime=0), "inflates to more than 200 times"),
    (lzma.compress(bytes(2**25)), "inflates to more than 200 times"),
    (gzip.compress(tar(member("a")))[:-9], "cannot be unpacked"),
    (gzip.compress(tar(member("a"))) + b"more", "cannot be unpacked"),
    (lzma.compress(tar(member("a")))[:-9], "cannot be unpacked"),
    (lzma.compress(tar(member("a"))) + b"more", "cannot be unpacked"),
    (lzma.compress(tar(member("a")), filters=GREEDY), "cannot be unpacked: Memory"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "problem"), HARM, ids=range(len(HARM)))
def test_archives_that_do_harm_are_refused(raw, problem):
    with pytest.raises(prudent.PrudentError, match=problem):
        unpacked(raw)


def test_a_header_that_was_wiped_out_is_not_the_end():
    raw = bytearray(tar(member("a"), member("b"), member("c")))
    raw[512:1024] = bytes(512)  # between two others
    with pytest.raises(prudent.PrudentError, match="has data after its end, or is damaged at byte 512"):
        unpacked(bytes(raw))
