"""Products and convolutions without libraries: run_products.py, whose digests
of bits are the same everywhere, without engines, which add in orders of their
own.  With oneDNN: run_winograd.py."""


def digests(python, *parts, **env):
    out = python("run_products.py", *parts, env={"SUNDOG_DEVICE": "host", "SUNDOG_LIBRARIES": "0", "SUNDOG_ENGINES": "0", **env})
    return dict(line.rsplit(" ", 1) for line in out.splitlines())


def test_bits_on_the_host(python):
    want = digests(python)
    assert len(want) > 100
    assert digests(python, SUNDOG_CPU_LEVEL="v3", SUNDOG_THREADS="1") == want


def test_products_by_engines(python):
    assert len(digests(python, SUNDOG_ENGINES="1")) > 100


# Intel's runtime compiles each of them slowly
def test_bits_on_opencl(python):
    few = ("dot 37x45x300", "dot 6x17x2000", "dot s8", "dot batch", "15x17x3->20")
    assert digests(python, *few, SUNDOG_DEVICE="cl") == digests(python, *few)


def test_winograd(python):
    bits = {python("run_winograd.py", env={"SUNDOG_DEVICE": "host", "SUNDOG_THREADS": threads}).splitlines()[-1]
            for threads in ("1", "3")}
    assert len(bits) == 1


def test_winograd_without_libraries(python):
    python("run_winograd.py", env={"SUNDOG_DEVICE": "host", "SUNDOG_LIBRARIES": "0"})


def test_subnormals(python):
    for libraries, kept in ("1", "1"), ("0", "1"), ("1", "0"), ("0", "0"):
        python("run_subnormals.py", env={"SUNDOG_DEVICE": "host", "SUNDOG_LIBRARIES": libraries,
                                         "SUNDOG_SUBNORMALS": kept})
