# make demo     builds everything and runs an unmodified program on four nodes
# make test     all tests that every change must pass (minutes)
# make nightly  the tests that take longer: all programs in all ways, papers' problem sizes, many rounds, fuzzing
# make lint     formatting, lints, documentation and its links, licences and versions of libraries
# make install  after make: the command, the libraries, headers, manual pages and completions for shells go below PREFIX
#               (of DESTDIR)
CARGO = cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
BUILT = $(TARGET)/release
GONDWANA = $(BUILT)/gondwana
PREFIX = /usr/local
INSTALL = install
ROOT = $(DESTDIR)$(PREFIX)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

all: programs
	$(CARGO) build --release --workspace

programs:
	$(MAKE) --silent -C apps
	$(MAKE) --silent -C tests/programs

demo: all
	scripts/demo $(GONDWANA)

# Random tests take the same cases each time, so that a failure is of the change that is tested; `make nightly` takes others.
test: export PROPTEST_RNG_SEED = 1
test: programs
	$(MAKE) --silent -C apps check
	$(CARGO) test --workspace --no-fail-fast

# The crates without system calls: their random tests can take any number of cases.
PURE = topology rset plan coherence monitor recording analysis symbols report

# For each fuzz target: a minute in all.
FUZZ_SECONDS = 5

# One test at a time: the long ones measure nothing, but their limits of time are meant for an idle computer.
nightly: test
	PROPTEST_CASES=50000 $(CARGO) test --release $(PURE:%=--package gondwana-%)
	$(CARGO) test --release --workspace -- --ignored --test-threads 1
	scripts/fuzz $(FUZZ_SECONDS)

# The command and the preloaded library have one name, and so their pages one folder, which two cargo jobs would clear at a
# time.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --exclude gondwana-preload --no-deps --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --package gondwana-preload --no-deps --quiet
	$(CARGO) test --workspace --test documents --quiet
	$(CARGO) deny --log-level error check licenses bans sources

# The runtime libraries are where the command looks for them; programs are linked with the one in lib. The command writes its
# own manual pages and completions.
install:
	$(INSTALL) -d $(ROOT)/bin $(ROOT)/lib/gondwana $(ROOT)/lib/pkgconfig $(ROOT)/include
	$(INSTALL) -d $(ROOT)/share/man/man3 $(ROOT)/share/man/man7
	$(INSTALL) $(BUILT)/gondwana $(ROOT)/bin
	$(INSTALL) -m 644 $(BUILT)/libgondwana.so $(BUILT)/libgondwana_affinity.so \
	           $(BUILT)/libgondwana_hooks.so $(ROOT)/lib/gondwana
	$(INSTALL) -m 644 $(BUILT)/libgondwana_api.so $(ROOT)/lib/libgondwana_api.so.$(VERSION)
	ln -sf libgondwana_api.so.$(VERSION) $(ROOT)/lib/libgondwana_api.so.0
	ln -sf libgondwana_api.so.0 $(ROOT)/lib/libgondwana_api.so
	$(INSTALL) -m 644 include/gondwana.h include/cg.h $(ROOT)/include
	$(INSTALL) -m 644 man/man3/*.3 $(ROOT)/share/man/man3
	$(INSTALL) -m 644 man/man7/*.7 $(ROOT)/share/man/man7
	$(GONDWANA) generate $(ROOT)/share
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' gondwana.pc.in >$(ROOT)/lib/pkgconfig/gondwana.pc

clean:
	$(CARGO) clean
	$(MAKE) -C apps clean
	$(MAKE) -C tests/programs clean

.PHONY: all programs demo test nightly lint install clean
