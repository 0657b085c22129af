# A thin door to Meson.  `make demo` and `make test` set up what is missing.
PY = .venv/bin/python
C = build/check

.PHONY: demo demo-sd bench-models bench-demo-sd models-pages test build wheel setup setup-test debug check conform ptx isa engines jax-tests conform-ops conform-text same numerics errors errors-page bench bless fmt lint \
	tsan soak fuzz spmd-fuzz fuzz-cover nightly hooks clean

setup:
	@tools/setup.sh build
setup-test:
	@tools/setup.sh test

demo: setup
	@$(PY) examples/demo.py

# Stable Diffusion in small, each stage against JAX's CPU; DEVICE=cl for the other device.
demo-sd:
	@tools/setup.sh sd
	@for d in f32 bf16; do SUNDOG_DEVICE=$(DEVICE) $(PY) examples/stable_diffusion.py \
	    --size small --dtype $$d --compare --out build/sd-$$d.png || exit 1; done

test: setup-test
	@tools/test.sh

build: setup                     # release libraries, the tool and the wheel

wheel: setup                     # for every Linux of glibc 2.28 or newer, and tried in a bare root
	@tests/wheel/wheel.sh

debug: setup-test
	@tools/sanitized.sh check
	@ln -sf $(C)/compile_commands.json compile_commands.json

check: debug                     # debug build: ASan, UBSan, verifiers on
	@meson test -C $(C) --print-errorlogs

tsan: setup-test
	@tools/sanitized.sh tsan
	@meson test -C build/tsan --no-rebuild --print-errorlogs --suite threads --suite soak

DEVICE ?= host
ONLY ?= .*
conform: setup-test
	@SUNDOG_DEVICE=$(DEVICE) $(PY) tests/conform/conform.py --only '$(ONLY)' \
	    $(if $(X64),--x64)

# JAX_SOURCE: JAX's repository, a checkout at the wheel's tag or a bare one.
# FILES=lax,nn or A or B, SHARD=i/n, SAMPLE=n (one test of n), X64=0 or 1.
# DEVICES=8: those of several devices (tier M), on so many.
JAX_SOURCE ?=
SHARD ?= 1/1
SAMPLE ?= 1
WORKERS ?= 1
JUDGE ?= cpu
DEVICES ?= 1
jax-tests:                       # JAX's own tests: docs/conformance.md
	@[ -n '$(JAX_SOURCE)' ] || { echo "jax-tests: JAX_SOURCE=path: JAX's repository, a checkout at the wheel's tag or a bare one"; exit 2; }
	@tools/setup.sh jax-tests
	@$(PY) tests/jax/run.py --device $(DEVICE) --devices $(DEVICES) --source '$(JAX_SOURCE)' --files '$(FILES)' \
	    --shard $(SHARD) --sample $(SAMPLE) --workers $(WORKERS) --judge $(JUDGE) $(if $(X64),--x64 $(X64)) $(if $(LEAN),--lean)
	@$(PY) tests/jax/table.py --print --judge $(JUDGE) \
	    --devices $(DEVICE)$(if $(filter-out 1,$(DEVICES)),-$(DEVICES))

conform-ops: DEVICE = eval       # every op x type x shape; also DEVICE=host, cl
conform-ops: setup-test
	@$(PY) tests/optype/optype.py --device $(DEVICE) --only '$(ONLY)'

conform-text: setup-test         # StableHLO and HLO text, HLO protobuf; jaxlib judges
	@ninja -C build/release --quiet tools/sundog tests/conform/roundtrip
	@$(PY) tests/conform/text.py
	@$(PY) tests/conform/roundtrip.py

# SET=python or conform, EVERY=n (one program of n), CHIPS=sm_80,sm_90,sm_100
SET ?= python
EVERY ?= 1
CHIPS ?= sm_80,sm_90,sm_100
ptx: setup-test                  # what CUDA GPUs get, taken by ptxas; no GPU needed
	@$(PY) tests/ptx/ptx.py --only '$(ONLY)' --every $(EVERY) --chips $(CHIPS) \
	    $(if $(filter conform,$(SET)),--conform) $(if $(X64),--x64)

# docs/isa.md; SET=conform is longer, SHARD=i/n, and goes on where it was
isa: setup-test                  # what Intel's GPUs get, by Intel's compiler; no GPU needed
	@$(PY) tools/isa.py --only '$(ONLY)' --every $(EVERY) --shard $(SHARD) $(if $(X64),--x64) \
	    $(if $(filter conform,$(SET)),--set conform,$(if $(filter-out .*,$(ONLY)),,--page --again))

# JAX's products and convolutions, and N random programs; SHARD=i/n, and goes on where it was
engines: N = 1000
engines: setup-test              # products by Intel's matrix engine, emulated: N of M are right
	@ninja -C build/release --quiet tools/sundog tests/unit/test_engines tests/unit/dpas.spv
	@$(PY) tests/random/engines.py --count $(N) --shard $(SHARD)

# BASE=path: the tools/sundog of another build, as of the commit before
BASE ?=
same: setup                      # plans, IR and code of tests/plan are those of BASE, to the byte
	@BASE='$(BASE)' tools/same.sh

numerics: setup-test             # docs/numerics.md's table is measured anew
	@ninja -C build/release --quiet tests/unit/test_hlo_scalar
	@tools/numerics.sh build/release

errors: debug                    # messages that no C test produces
	@rm -f build/errors; SUNDOG_ERRORS_SEEN=$(CURDIR)/build/errors meson test -C $(C) --quiet
	@$(PY) tools/gen_errors.py missing build/errors

errors-page:                     # docs/errors.md from the sources
	@python3 tools/gen_errors.py write

bench: setup
	@$(PY) bench/bench.py

# Models that people run, against JAX's CPU: docs/models.md.  MODELS=regex
# takes some, BIG=--big those of gigabytes too.
MODELS ?= .*
bench-models:
	@tools/setup.sh models
	@$(PY) bench/models/run.py --device $(DEVICE) --only '$(MODELS)' $(BIG); s=$$?; \
	    $(PY) bench/models/plot.py $$(ls -t bench/results/models-$(DEVICE)*.json | head -1) build/models.png && exit $$s

# The figures of demo-sd, kept; and the tables of docs/models.md and
# docs/stable-diffusion.md from what bench-models and this have kept.
bench-demo-sd:
	@tools/setup.sh sd
	@$(PY) bench/models/demo_sd.py
models-pages:
	@tools/setup.sh models
	@$(PY) bench/models/pages.py

bless: debug                     # golden plans are written anew; read the diff
	@SUNDOG_BLESS=1 meson test -C $(C) --suite golden
	@SUNDOG_BLESS=1 $(PY) -m pytest -q tests/python/test_inspect.py -k golden
	@$(PY) tools/gen_pjrt.py docs abi/pjrt.tsv plugin/pjrt_extensions.def docs/pjrt.md

fmt:                             # headers are laid out by hand
	@clang-format-22 -i $$(git ls-files '*.c')

lint: debug
	@tools/lint.sh

SECONDS ?= 600
soak: setup-test                 # eight threads of JAX at random
	@SUNDOG_DEVICE=host SUNDOG_HOST_DEVICES=2 JAX_PLATFORMS=xpu,cpu $(PY) tests/python/soak.py $(SECONDS)
	@SUNDOG_DEVICE=cl SUNDOG_CL_SPLIT=2 JAX_PLATFORMS=xpu,cpu $(PY) tests/python/soak.py $(SECONDS)

T ?= bytecode
N ?= 60
fuzz: setup-test                 # T=all: every target side by side
	@tools/fuzz.sh $(T) $(N)

SEED ?= 1
spmd-fuzz: setup-test            # random programs, cut and uncut
	@build/release/tools/sundog spmd --random=$(N) --seed=$(SEED)

fuzz-cover: setup-test           # lines of each room that the corpora reach
	@tools/fuzz_cover.sh

nightly: test tsan
	@$(MAKE) conform DEVICE=eval X64=1
	@$(MAKE) conform DEVICE=host X64=1
	@$(MAKE) conform DEVICE=cl X64=1
	@$(MAKE) ptx
	@$(MAKE) ptx SET=conform X64=1 EVERY=4
	@SUNDOG_TEST_CALLBACKS=100000 $(PY) -m pytest -q -p no:cacheprovider \
	    tests/python/test_callbacks.py -k flat
	@for d in eval host cl; do $(MAKE) conform-ops DEVICE=$$d || exit 1; done
	@$(MAKE) conform-text
	@tests/jax/nightly.sh
	@build/release/tests/hostile/test_hostile 1 tests/hostile/artifacts
	@for d in host cl; do VIRTUAL_ENV=$(CURDIR)/.venv build/release/tests/random/test_random $$d run 1 5000 || exit 1; done
	@$(MAKE) fuzz T=all N=1800

hooks:
	@git config core.hooksPath tools/hooks

clean:
	@rm -rf build dist compile_commands.json
