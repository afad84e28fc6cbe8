# make demo     builds everything and runs an unmodified program on four nodes
# make test     all tests that every change must pass (minutes)
# make nightly  the tests that take longer: all programs in all ways, papers' problem sizes, many rounds
# make lint     formatting, lints, documentation
CARGO = cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
GONDWANA = $(TARGET)/release/gondwana

all: programs
	$(CARGO) build --release --workspace

programs:
	$(MAKE) --silent -C apps
	$(MAKE) --silent -C tests/programs

demo: all
	scripts/demo $(GONDWANA)

test: programs
	$(MAKE) --silent -C apps check
	$(CARGO) test --workspace --no-fail-fast

# One test at a time: the long ones measure nothing, but their limits of time are meant for an idle computer.
nightly: test
	$(CARGO) test --release --workspace -- --ignored --test-threads 1

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

clean:
	$(CARGO) clean
	$(MAKE) -C apps clean
	$(MAKE) -C tests/programs clean

.PHONY: all programs demo test nightly lint clean
