"""What one can look at: dumps, the dumped kernels run on their own, Intel's
machine code, kernel counts on described devices, golden plans."""
import glob
import os
import re
import subprocess
import sys

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TOOL = os.path.join(TOP, "build/release/tools/sundog")

SQUARE = ("import jax, jax.numpy as jnp, numpy as np; "
          "x = jax.device_put(np.arange(1000), jax.devices('xpu')[0]); "
          "x = x.astype(np.float32); print(float((x**2).sum()))")
FLAGS = ("--xla_dump_to={} --xla_dump_hlo_as_text "
         "--xla_dump_hlo_pass_re=.*")


def dump_square(python, path, device):
    python(SQUARE, env={"SUNDOG_DEVICE": device,
                        "XLA_FLAGS": FLAGS.format(path)})
    files = sorted(os.listdir(path))
    return [f for f in files if ".jit_integer_pow." in f], files


@pytest.mark.parametrize("device,binary", [("host", "s"), ("cl", "spv")])
def test_dump_files(python, tmp_path, device, binary):
    square, files = dump_square(python, tmp_path, device)
    assert any(f.startswith("module_0000.") for f in files)
    kinds = {f.split(".jit_integer_pow.")[1] for f in square}
    assert {"before_optimizations.txt", "after_optimizations.txt",
            "ir-no-opt.ll", "ir-with-opt.ll", "thunk_sequence.txt",
            binary} <= kinds
    assert any(re.fullmatch(r"\d{4}\.after_.*\.txt", k) for k in kinds)
    base = str(tmp_path / square[0].split(".jit_integer_pow.")[0])
    text = open(base + ".jit_integer_pow.ir-with-opt.ll").read()
    assert "wrapped_multiply" in text
    if device == "cl":
        assert "spir64" in text or "spirv64" in text
        subprocess.run(["spirv-val", base + ".jit_integer_pow.spv"], check=True)


@pytest.mark.parametrize("setting",
                         ["SUNDOG_DUMP_MODULES", "SUNDOG_DUMP_PASSES"])
def test_what_is_no_expression_is_said(python, tmp_path, setting):
    r = python(SQUARE, check=False,
               env={"SUNDOG_DUMP_TO": str(tmp_path), setting: "("})
    assert r.returncode == 0, r.stderr
    assert f"{setting}: ( is no extended regular expression: " in r.stderr


@pytest.mark.parametrize("name, said", [
    ("cse,slow", "no pass is named slow"),
    ("lower-dot", "lower-dot stays: what comes later needs it"),
])
def test_a_pass_that_runs_all_the_same_is_said(python, name, said):
    r = python(SQUARE, check=False, env={"SUNDOG_DISABLE_PASSES": name})
    assert f"SUNDOG_DISABLE_PASSES: {said}" in r.stderr, r.stderr


def opencl_env(tmp_path):
    """Debian's ICD loader, pointed at Intel's runtime in this environment."""
    lib = os.path.join(sys.prefix, "lib", "libintelocl.so")
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    (vendors / "intel.icd").write_text(lib + "\n")
    return {**os.environ, "OCL_ICD_VENDORS": str(vendors)}


def test_dumped_spv_runs_in_a_plain_opencl_program(python, tmp_path):
    square, _ = dump_square(python, tmp_path / "d", "cl")
    base = str(tmp_path / "d" / square[0].split(".jit_integer_pow.")[0])
    steps = open(base + ".jit_integer_pow.thunk_sequence.txt").read()
    kernel = re.search(r"wrapped_multiply\S*", steps).group(0).rstrip(",:")
    tiles = re.search(r"tiles[= ](\d+)", steps).group(1)
    program = str(tmp_path / "run_spv")
    source = os.path.join(TOP, "examples/run_spv.c")
    assert len(open(source).readlines()) <= 80
    loader = "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"
    subprocess.run(["cc", source, loader, "-o", program], check=True)
    out = subprocess.run([program, base + ".jit_integer_pow.spv", kernel,
                          "1000", tiles], env=opencl_env(tmp_path),
                         capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "1000 results right" in out.stdout


# --- kernel counts and plans against described devices ---

EXPORT = """
import sys, jax
from jax._src.interpreters import mlir
from jaxlib import _jax
import programs
mlir._platforms_with_donation.append('xpu')

def export(name, label, path):
    if name == 'mlp_step':
        fn, args, static = programs.mlp_step, programs.mlp_data(), ()
        donate = (0,)
    else:
        p = programs.PROGRAMS[name]
        fn, args, static, donate = p.fn, p.args(label), p.static, ()
    low = jax.jit(fn, static_argnums=static, donate_argnums=donate).trace(
        *args).lower(lowering_platforms=('xpu',))
    open(path, 'wb').write(_jax.mlir.serialize_portable_artifact(
        low.compiler_ir('stablehlo'), '1.17.0', True))

if sys.argv[1] == '--all':
    for p in programs.PROGRAMS.values():
        for i, label in enumerate(p.specs):
            if i in (len(p.specs) // 2, len(p.specs) - 1):
                export(p.name, label, f'{sys.argv[2]}/{p.name}-{i}.mlirbc')
else:
    export(*sys.argv[1:4])
"""


@pytest.fixture
def artifact(python, tmp_path):
    def make(name, label=""):
        path = str(tmp_path / f"{name}-{label}.mlirbc")
        python(EXPORT, name, label, path, env={"JAX_PLATFORMS": "cpu"})
        return path
    return make


def plan(path, target):
    r = subprocess.run([TOOL, "opt", f"--target={target}", "--plan", path],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout


def counts(path, target="host:v4"):
    text = plan(path, target)
    return (len(re.findall(r"^\s*step \d+ kernel|^\s*\d+: kernel", text, re.M)),
            len(re.findall(r"^\s*step \d+ libcall|^\s*\d+: libcall", text,
                           re.M)), text)


@pytest.mark.parametrize("target", ["host:v4", "cl:pvc"])
@pytest.mark.parametrize("name,label,most", [
    ("abs_sqrt", "1024-float32", 1), ("softmax_last", "64x4097-float32", 1),
    ("softmax_last", "4x5x33-bfloat16", 1),
    ("softmax_masked_axis0", "513x1023-float32", 1),
    ("layer_norm", "512x768-float32", 1),
    ("layer_norm", "4x5x33-float32", 1),
    ("rms_norm_gate", "512x768-float32", 1),
    ("rms_norm_gate", "512x768-bfloat16", 1),
    ("layer_norm_grad", "512x768-float32", 2),
    ("gelu_chain", "33x65-float32", 1), ("gelu_chain", "33x65-bfloat16", 1)])
def test_kernel_counts(artifact, name, label, most, target):
    kernels, calls, text = counts(artifact(name, label), target)
    assert 1 <= kernels <= most and calls == 0, text


@pytest.mark.parametrize("name,label", [("matmul", "512x512x512-float32"),
                                        ("conv", "NCHW-3x3"),
                                        ("conv", "NHWC-3x3")])
def test_bias_and_relu_are_inside_the_call(artifact, name, label):
    kernels, calls, text = counts(artifact(name, label))
    assert (kernels, calls) == (0, 1), text


def without_places(text):
    """A plan without what a device may change: places, tiles, passes, memory."""
    text = re.sub(r"for (host|cl):\S+|\b\d+ tiles|, local \d+", "", text)
    text = re.sub(r"^  (area|loops) .*\n", "", text, flags=re.M)
    text = re.sub(r"^(  stage \d+ \{\S*\}):.*", r"\1", text, flags=re.M)
    text = re.sub(r" (tile|tiles|group|items|vector|local|unroll|copies)[ =]\d+", "", text)
    return re.sub(r" (seq|lane|crowd|unroll|parked|staged|grid|by \d+)\b", "", text)


@pytest.mark.parametrize("name,label", [
    ("softmax_last", "64x4097-float32"), ("layer_norm", "512x768-float32"),
    ("layer_norm_grad", "512x768-float32"), ("movement", "5x7x9-float32"),
    ("cumulative", "5x33-float32"), ("max_pool", "odd")])
def test_one_plan_for_both_devices(artifact, name, label):
    path = artifact(name, label)
    assert without_places(plan(path, "host:v3")) == \
        without_places(plan(path, "cl:pvc"))


def test_mlp_step_plan_is_golden(artifact):
    text = plan(artifact("mlp_step"), "host:v4")
    golden = os.path.join(HERE, "golden", "mlp_step.plan")
    if os.environ.get("SUNDOG_BLESS"):
        os.makedirs(os.path.dirname(golden), exist_ok=True)
        open(golden, "w").write(text)
    assert text == open(golden).read()


# --- what runs on cl ---

def test_on_cl_only_the_device_computes(python, tmp_path):
    """Every skeleton program compiled for cl: its steps launch kernels, copy
    and branch, nothing else; each SPIR-V module is valid."""
    python(EXPORT, "--all", str(tmp_path), env={"JAX_PLATFORMS": "cpu"})
    paths = glob.glob(str(tmp_path / "*.mlirbc"))
    assert len(paths) > 50
    kinds = set()
    for i, path in enumerate(paths):
        out = tmp_path / str(i)
        subprocess.run([TOOL, "compile", "--target=cl:cpu", f"--out={out}",
                        path], check=True, capture_output=True)
        steps = open(glob.glob(str(out / "*.thunk_sequence.txt"))[0]).read()
        kinds |= set(re.findall(r"^\s*\d{3}: ([\w-]+)", steps, re.M))
        for spv in glob.glob(str(out / "*.spv")):
            subprocess.run(["spirv-val", spv], check=True)
    assert {"kernel", "copy", "while"} <= kinds <= {"kernel", "copy", "while", "conditional"}


# --- Intel's GPU compiler ---

@pytest.mark.parametrize("device", ["pvc", "dg2-g10"])
@pytest.mark.parametrize("name,label", [
    ("softmax_last", "64x4097-float32"), ("layer_norm", "512x768-float32"),
    ("movement", "33x65x40-float32"), ("row_sum", ""), ("column_sum", ""),
    ("transpose", ""), ("matmul", "512x512x512-float32")])
def test_intel_gpu_code(artifact, tmp_path, device, name, label):
    path = artifact(name, label)
    out = tmp_path / "out"
    subprocess.run([TOOL, "compile", f"--target=cl:{device}", f"--out={out}",
                    path], check=True, capture_output=True)
    spv = glob.glob(str(out / "*.spv"))
    assert spv
    for f in spv:
        subprocess.run(["spirv-val", f], check=True)
    r = subprocess.run([sys.executable, os.path.join(TOP, "tools/intel_isa.py"),
                        "--device", device, *spv], capture_output=True,
                       text=True)
    assert r.returncode == 0, r.stdout + r.stderr
    rows = [l.split("\t") for l in r.stdout.splitlines()[1:]]
    assert rows
    for row in rows:
        # pvc has no sub-groups of 8
        assert row[1] in ("8", "16", "32")[device == "pvc":], r.stdout
        assert row[3] == "0", r.stdout


PRODUCT = """HloModule m
ENTRY e {{
  x = {of}[512,512] parameter(0)
  y = {of}[512,512] parameter(1)
  ROOT d = {sum}[512,512] dot(x, y), lhs_contracting_dims={{{x}}}, rhs_contracting_dims={{{y}}}
}}
"""


@pytest.mark.parametrize("device,simd", [("pvc", "16"), ("dg2-g10", "8")])
@pytest.mark.parametrize("of,sum", [("bf16", "f32"), ("f16", "f32"),
                                    ("s8", "s32"), ("u8", "s32")])
def test_intel_products_take_the_matrix_engine(tmp_path, device, simd, of, sum):
    for x, y in ((1, 0), (0, 1)):
        path = tmp_path / "product.hlo"
        path.write_text(PRODUCT.format(of=of, sum=sum, x=x, y=y))
        for engines in ("1", "0"):
            out = tmp_path / f"out{x}{engines}"
            subprocess.run([TOOL, "compile", f"--target=cl:{device}",
                            f"--out={out}", path], check=True,
                           capture_output=True,
                           env={**os.environ, "SUNDOG_ENGINES": engines})
            spv = glob.glob(str(out / "*.spv"))
            # Debian 12's validator reads a type in OpAsmTargetINTEL, which has none.
            if b"SPV_INTEL_inline_assembly" not in open(spv[0], "rb").read():
                subprocess.run(["spirv-val", *spv], check=True)
            r = subprocess.run(
                [sys.executable, os.path.join(TOP, "tools/intel_isa.py"),
                 "--device", device, *spv], capture_output=True, text=True)
            assert r.returncode == 0, r.stdout + r.stderr
            row, = (l.split("\t") for l in r.stdout.splitlines()[1:])
            assert row[3] == "0", r.stdout
            assert (int(row[8]) > 0) == (engines == "1"), r.stdout
            assert engines == "0" or row[1] == simd, r.stdout
            # Blocks are one message each, and one addition.
            if engines == "1" and x == 1 and of in ("bf16", "f16"):
                assert int(row[9]) <= 5.5 * int(row[10]), r.stdout


def isa(tmp_path, *more, env=None):
    return subprocess.run(
        [sys.executable, os.path.join(TOP, "tools/isa.py"), "--out",
         str(tmp_path), "--chips", "pvc", *more], capture_output=True,
        text=True, env={**os.environ, **(env or {})})


def test_machine_code_of_a_set_is_counted_and_kept(tmp_path):
    only = ("--only", "^(product bf16 500|elementwise s8)")
    done = isa(tmp_path, *only)
    assert done.stdout.startswith("2 of 2 programs build for pvc; 2 kernels")
    rows = [l.split("\t") for l in open(tmp_path / "standard-pvc.tsv")]
    product = dict(zip(rows[0], next(r for r in rows if "500" in r[0])))
    assert int(product["dpas"]) > 0 and int(product["loop"]) > 0
    assert float(product["flops"]) >= 2 * 500 * 300 * 700
    # a second run takes what is there
    kept = (tmp_path / "standard-pvc.tsv").read_text().replace("builds", "no")
    (tmp_path / "standard-pvc.tsv").write_text(kept)
    assert isa(tmp_path, *only).stdout.startswith("0 of 0 programs")


def test_without_intels_compiler_a_user_reads_what_to_install(tmp_path):
    done = isa(tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "apt-get install intel-opencl-icd" in done.stderr


def test_what_is_described_is_listed_where_no_device_opens():
    done = subprocess.run([TOOL, "devices"], capture_output=True, text=True,
                          env={**os.environ, "SUNDOG_DEVICE": "cuda",
                               "SUNDOG_CUDA_LIBRARY": "/nowhere/libcuda.so.1"})
    assert done.returncode == 1
    assert "described  cl:pvc" in done.stdout and "here " not in done.stdout
    assert done.stderr.startswith("sundog devices: SUNDOG_CUDA_LIBRARY: no CUDA driver: ")


def test_devices_says_why_a_gpu_was_not_taken():
    done = subprocess.run([TOOL, "devices"], capture_output=True, text=True,
                          env={**os.environ, "SUNDOG_DEVICE": "auto",
                               "SUNDOG_CUDA_LIBRARY": "/nowhere/libcuda.so.1"})
    assert done.returncode == 0 and "here       " in done.stdout
    assert ("sundog warn: no CUDA GPU, another device is used: "
            "SUNDOG_CUDA_LIBRARY: no CUDA driver: /nowhere/libcuda.so.1: "
            "cannot open") in done.stderr


def test_a_command_that_there_is_not_is_named():
    done = subprocess.run([TOOL, "devises"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "sundog: there is no command 'devises'; `sundog --help` has them\n"


def tool(*args, cwd=None):
    return subprocess.run([TOOL, *args], capture_output=True, text=True, cwd=cwd)


def test_the_version_is_said():
    done = tool("--version")
    assert re.fullmatch(r"sundog \d+\.\d+\.\d+-[0-9a-f]{12}, LLVM \S+\n", done.stdout)
    assert tool("-h").stdout == tool("help").stdout == tool("--help").stdout
    assert tool("help", "run").stdout == tool("run", "-h").stdout


ONE_PARTICIPANT = ("HloModule e\nENTRY e {\n  x = f32[4] parameter(0)\n"
                   "  ROOT y = f32[4] tanh(x)\n}\n")


@pytest.mark.parametrize("args, status, said", [
    ("run --seed=x e.hlo", 2, "sundog run: --seed=x: --seed=N is wanted\nusage: sundog run "),
    ("spmd --random=-1", 2, "sundog spmd: --random=-1: --random=N is wanted\nusage: "),
    ("opt --target e.hlo", 2, "sundog opt: --target: --target=NAME is wanted\nusage: "),
    ("opt --plan=1 e.hlo", 2, "sundog opt: --plan=1: --plan is wanted\nusage: "),
    ("opt --pla e.hlo", 2, "sundog opt: --pla is no flag of this command\nusage: "),
    ("compile --target=cl:pvc", 2, "sundog compile: a FILE is wanted\nusage: "),
    ("dump e.hlo other", 2, "sundog dump: other is one argument too many\nusage: "),
    ("compile --out=e.hlo e.hlo", 1, "sundog compile: --out=e.hlo: no folder that can be written to\n"),
    ("run e.hlo a.npy b.npy", 1, "sundog run: e: parameters: 1, and files for them: 2\n"),
    ("mlir e.hlo", 1, "e.hlo: this is HLO text; MLIR is wanted\n"),
    ("spmd e.hlo", 1, "sundog spmd: e is for one participant: nothing is cut (--devices=N "),
    ("spmd --stage=cut --devices=2 e.hlo", 1, "sundog spmd: no stage is called cut; there are import, "),
    ("spmd --stage=cut e.hlo", 1, "sundog spmd: no stage is called cut; there are import, "),
    ("spmd --stage=cut --random=1", 1, "sundog spmd: no stage is called cut; there are import, "),
])
def test_what_is_wrong_on_the_command_line_is_said(tmp_path, args, status, said):
    (tmp_path / "e.hlo").write_text(ONE_PARTICIPANT)
    done = tool(*args.split(), cwd=tmp_path)
    assert done.returncode == status
    assert said in done.stderr


def test_an_array_of_another_shape_is_told_what_is_wanted(tmp_path):
    (tmp_path / "e.hlo").write_text(ONE_PARTICIPANT)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    done = tool("run", str(tmp_path / "e.hlo"), str(tmp_path / "x.npy"))
    assert done.stderr.endswith("x.npy is s32[2,3], and parameter 0 takes f32[4]\n")


def test_whoever_reads_the_output_may_stop():
    """Python ignores SIGPIPE and hands that on to the tool."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([TOOL, "options"], stdout=write, stderr=subprocess.PIPE,
                          text=True, restore_signals=False)
    os.close(write)
    assert done.returncode == 1 and done.stderr == ""


@pytest.mark.parametrize("args", ["options", "--help", "--version", "help run", "passes"])
def test_a_full_disk_beneath_the_output_is_said(args):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([TOOL, *args.split()], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "sundog: standard output: No space left on device\n"


def test_files_of_compile_that_were_not_written_are_an_error(tmp_path):
    (tmp_path / "e.hlo").write_text(ONE_PARTICIPANT)

    # A disk that is full after 600 bytes; in a process of its own, since JAX's
    # threads are in this one.
    full = ("import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            "resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)); os.execv(sys.argv[1], sys.argv[1:])")
    done = subprocess.run([sys.executable, "-c", full, TOOL, "compile", "--out=d", "e.hlo"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert "nothing more of this module is dumped" in done.stderr
    assert "sundog compile: --out=d: not every file could be written; " in done.stderr


def test_passes_are_listed_and_known(tmp_path):
    told = subprocess.run([TOOL, "passes"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in told.splitlines()]
    assert {"cse", "fold", "simplify", "tuple"} < set(names) and len(set(names)) == len(names)
    assert re.search(r"^dce  .*\(cannot be left out\)$", told, re.M)
    (tmp_path / "m.hlo").write_text(NOT_OF_MAX)
    subprocess.run([TOOL, "opt", "--passes=" + ",".join(names), tmp_path / "m.hlo"], capture_output=True, check=True)
    done = subprocess.run([TOOL, "opt", "--passes=slow", tmp_path / "m.hlo"], capture_output=True, text=True)
    assert "no pass is called slow; sundog passes has them" in done.stderr


NOT_OF_MAX = """HloModule m
ENTRY e {
  x = s32[1000] parameter(0)
  y = s32[1000] parameter(1)
  z = s32[1000] maximum(x, y)
  ROOT r = s32[1000] not(z)
}
"""


@pytest.mark.parametrize("device, hidden", [("cpu", True), ("pvc", False),
                                            ("dg2-g10", False)])
def test_only_drivers_with_a_mistake_get_code_around_it(tmp_path, device,
                                                         hidden):
    """Intel's runtime for CPUs must not see the -1 of ~x (quirks.def)."""
    program = tmp_path / "not.hlo"
    program.write_text(NOT_OF_MAX)
    subprocess.run([TOOL, "compile", f"--target=cl:{device}",
                    f"--out={tmp_path}", program], check=True,
                   capture_output=True)
    code = (tmp_path / "module_0000.m.ir-with-opt.ll").read_text()
    assert ("get_work_dim" in code) == hidden


def compiled(tmp_path, text, *flags):
    """What `sundog compile` says of a program in HLO text for host:v3."""
    path = tmp_path / "program.hlo"
    path.write_text(text)
    return subprocess.run([TOOL, "compile", "--target=host:v3", *flags,
                           str(path)], text=True, capture_output=True,
                          check=True, cwd=tmp_path)


def test_compile_says_where_its_time_goes(tmp_path):
    run = compiled(tmp_path, """HloModule m
ENTRY f { p = f32[64]{0} parameter(0)  ROOT r = f32[64]{0} negate(p) }
""", "--time")
    assert re.search(r"wrapped_negate and 0 more, quick: IR [\d.]+ ms, passes "
                     r"[\d.]+ ms, machine code [\d.]+ ms", run.stderr)
    assert "0 careful kernels" in run.stderr
    assert re.search(r"m: reading [\d.]+ ms, passes [\d.]+ ms, plan", run.stderr)
    assert "files in" not in run.stdout
    assert os.listdir(tmp_path) == ["program.hlo"]      # no dumps


def test_run_says_what_its_steps_take(tmp_path):
    """A loop's steps are counted turn by turn, and it itself not."""
    path = tmp_path / "program.hlo"
    path.write_text("""HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
body { x = f32[300,400]{1,0} parameter(0)  z = f32[] constant(0)
  s = f32[400]{0} reduce(x, z), dimensions={0}, to_apply=add
  t = f32[300,400]{1,0} broadcast(s), dimensions={1}
  ROOT r = f32[300,400]{1,0} tanh(t), metadata={op_name="jit(f)/tanh"} }
turn { t = (s32[], f32[300,400]{1,0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0  x = f32[300,400]{1,0} get-tuple-element(t), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)  y = f32[300,400]{1,0} call(x), to_apply=body
  ROOT r = (s32[], f32[300,400]{1,0}) tuple(j, y) }
more { t = (s32[], f32[300,400]{1,0}) parameter(0)  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(7)  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY f { x = f32[300,400]{1,0} parameter(0)  zero = s32[] constant(0)
  t = (s32[], f32[300,400]{1,0}) tuple(zero, x)
  w = (s32[], f32[300,400]{1,0}) while(t), condition=more, body=turn
  ROOT r = f32[300,400]{1,0} get-tuple-element(w), index=1 }
""")
    for device in "host", "cl":
        told = subprocess.run([TOOL, "run", "--time", path], text=True, check=True,
                              capture_output=True,
                              env={**os.environ, "SUNDOG_DEVICE": device,
                                   "VIRTUAL_ENV": sys.prefix}).stdout
        assert re.match(r"[\d.]+ ms a run in \d+ steps \(\d+ runs\)\n", told)
        steps = [line.split() for line in told.splitlines()[2:]]
        assert any(s[2] == "7" and s[-1] == "jit(f)/tanh" for s in steps), told
        assert not any(s[5] == "while" for s in steps), told
        assert abs(sum(float(s[1]) for s in steps) - 100) < 1
    assert not re.search("f32.300,400. ", told)         # no results


def test_rounding_is_said_in_the_processors_words(tmp_path):
    """Of what LLVM would ask about for long: shifts, the halves that are stored,
    NaNs, and numbers, which are read once.  A number whose bits matter to who
    uses it stays: 24 bits without a sign are a float by one instruction."""
    compiled(tmp_path, """HloModule m
ENTRY f { p = bf16[4096]{0} parameter(0)  q = f32[4096]{0} parameter(1)
  r = u32[4096]{0} parameter(2)
  x = bf16[4096]{0} add(p, p)  y = bf16[4096]{0} multiply(x, p)
  z = bf16[4096]{0} convert(q)  w = bf16[4096]{0} add(y, z)
  e = u32[] constant(8)  eight = u32[4096]{0} broadcast(e), dimensions={}
  s = u32[4096]{0} shift-right-logical(r, eight)
  g = f32[4096]{0} convert(s)
  ROOT t = (bf16[4096]{0}, f32[4096]{0}) tuple(w, g) }
""", f"--out={tmp_path}/d")
    [ir] = glob.glob(f"{tmp_path}/d/*ir-with-opt.ll")
    text = open(ir).read()
    for name in ("avx2.pslli.d", "avx2.psrli.d", "sse41.packusdw",
                 "avx.cmp.ps.256", "avx.blendv.ps.256"):
        assert f"@llvm.x86.{name}(" in text
    assert not re.search(r"add <8 x i32> .*splat", text)
    assert "select <8 x i1>" not in text
    assert re.search(r"lshr <8 x i32> %\S+, splat \(i32 8\)", text)
    [code] = glob.glob(f"{tmp_path}/d/*.s")
    assert "vcvtdq2ps" in open(code).read()


def test_counters_are_not_looked_into(tmp_path):
    """An address in a loop is a pointer, a position and a number."""
    compiled(tmp_path, """HloModule m
ENTRY f { p = f32[3000,4096]{1,0} parameter(0)
  s = f32[3000,4096]{1,0} slice(p), slice={[0:3000], [0:4096]}
  ROOT r = f32[3000,4096]{1,0} add(p, s) }
""", f"--out={tmp_path}/d")
    [ir] = glob.glob(f"{tmp_path}/d/*ir-with-opt.ll")
    assert re.search(r"call i64 @llvm.expect.i64\(i64 (%\w+), i64 \1\)",
                     open(ir).read())
    [code] = glob.glob(f"{tmp_path}/d/*.s")
    assert re.search(r"vmovups\t32\(%\w+,%\w+,4\)", open(code).read())


TURNS = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
body { s = (s32[], f32[80,300]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[80,300]{1,0} get-tuple-element(s), index=1
  one = s32[] constant(1)  next = s32[] add(i, one)  zero = f32[] constant(0)
  sums = f32[80]{0} reduce(x, zero), dimensions={1}, to_apply=add
  wide = f32[80,300]{1,0} broadcast(sums), dimensions={0}
  y = f32[80,300]{1,0} add(x, wide)
  ROOT r = (s32[], f32[80,300]{1,0}) tuple(next, y) }
cond { s = (s32[], f32[80,300]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(TURNS)
  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY f { p = f32[80,300]{1,0} parameter(0)  zero = s32[] constant(0)
  s = (s32[], f32[80,300]{1,0}) tuple(zero, p)
  w = (s32[], f32[80,300]{1,0}) while(s), condition=cond, body=body
  ROOT r = f32[80,300]{1,0} get-tuple-element(w), index=1 }
"""


def test_kernels_of_few_turns_are_compiled_quickly(tmp_path):
    """By what all turns take together; a turn is too long for the loop to be a
    kernel itself."""
    careful = [int(re.search(r"(\d+) careful kernels", compiled(
        tmp_path, TURNS.replace("TURNS", str(n)), "--time").stderr).group(1))
        for n in (2, 1000)]
    assert careful[0] < careful[1]


def test_bytes_are_woven_in_vectors_of_16(tmp_path):
    """Where 64 would be woven at once, AVX-512 has no instruction for it."""
    compiled(tmp_path, """HloModule m
ENTRY e { x = u8[4000,3]{1,0} parameter(0)  o = u8[] constant(255)
  a = u8[4000,1]{1,0} broadcast(o), dimensions={}
  ROOT r = u8[4000,4]{1,0} concatenate(x, a), dimensions={1} }
""", f"--out={tmp_path}/d", "--target=host:v4")
    [code] = glob.glob(f"{tmp_path}/d/*.s")
    assert "punpck" in open(code).read()
    assert "zmm" not in open(code).read()


def test_products_in_blocks_are_compiled_with_care(tmp_path):
    """Quick code keeps their sums in memory.  One of few multiplications runs
    for less than care takes."""
    careful = [int(re.search(r"(\d+) careful kernels", compiled(tmp_path, f"""
HloModule m
ENTRY e {{ x = s32[{n},{n}] parameter(0)
  ROOT d = s32[{n},{n}] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}
""", "--time").stderr).group(1)) for n in (24, 64)]
    assert careful == [0, 1]


def test_scatters_are_compiled_with_care(tmp_path):
    """Their updates come one after the other, so each takes as long as quick
    code does.  Few run for less than care takes."""
    careful = [int(re.search(r"(\d+) careful kernels", compiled(tmp_path, f"""
HloModule m
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }}
ENTRY e {{ x = f32[400] parameter(0)  i = s32[{n},1] parameter(1)  u = f32[{n}] parameter(2)
  ROOT d = f32[400] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add }}
""", "--time").stderr).group(1)) for n in (2000, 40000)]
    assert careful[0] == 0 and careful[1] >= 1


@pytest.mark.parametrize("text,read", [
    ("""p = f32[64,40]{1,0} parameter(0)  z = f32[] constant(0)
  ROOT r = f32[64]{0} reduce(p, z), dimensions={1}, to_apply=add""", None),
    ("""p = f32[960]{0} parameter(0)  q = f32[16]{0} parameter(1)
  w = f32[16,60]{1,0} broadcast(q), dimensions={0}
  v = f32[960]{0} reshape(w)
  ROOT r = f32[960]{0} add(p, v)""", "llvm.x86.avx2.gather.d.ps.256")])
def test_elements_far_apart_without_avx512(tmp_path, text, read):
    """LLVM makes of a gather there a vector of addresses, and takes it apart
    again: most of the time in which such a kernel was compiled, and a
    transposition took twice as long."""
    compiled(tmp_path, f"""HloModule m
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
ENTRY f {{ {text}
}}
""", f"--out={tmp_path}/d")
    [ir] = glob.glob(f"{tmp_path}/d/*ir-with-opt.ll")
    text = open(ir).read()
    assert "llvm.masked.gather" not in text
    assert not read or read in text
