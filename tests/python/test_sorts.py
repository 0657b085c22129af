"""Long sorts and scatters: run_sorts.py, on each device that is here."""


def test_on_the_host(python):
    python("run_sorts.py", "--elements=70001", env={"SUNDOG_DEVICE": "host"})


# digit by digit from some 100,000 elements on; Intel's runtime compiles slowly
def test_on_opencl(python):
    python("run_sorts.py", "--elements=300007", "--only=^(argsort (int32|float32|uint8)|payloads|sums|set|sort columns)$",
           env={"SUNDOG_DEVICE": "cl"})


# rows in the registers of a group's items: those of 1 to 9,000 elements
def test_rows_on_opencl_as_a_gpu(python):
    python("run_sorts.py", "--elements=9000", "--only=rows of (1|3|9|64|100|257|1000|2049|9000)$",
           env={"SUNDOG_DEVICE": "cl", "SUNDOG_CL_AS": "cl:pvc"})
