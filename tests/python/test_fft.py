"""Fourier transforms: run_fft.py on each device."""


def test_on_the_host(python):
    python("run_fft.py", env={"SUNDOG_DEVICE": "host"})


def test_with_short_vectors(python):
    python("run_fft.py", "-k", "(lines or volumes) and not no_larger", env={"SUNDOG_DEVICE": "host", "SUNDOG_CPU_LEVEL": "v3"})


# a transform of each kind: compiling one takes seconds there
def test_on_opencl(python):
    few = ("f32 and (lines[ and (shape0 or shape3 or shape5 or shape6 or shape9) or real and (31 or 256 or 1009 or real_lines[f32-2])"
           " or back and (shape0 or shape5 or shape9))")
    python("run_fft.py", "-k", few, env={"SUNDOG_DEVICE": "cl"})
