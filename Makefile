# Hadoptic. `make` alone says what there is.
#
# Everything is built in one profile (release) and in two fixed groups of packages, so that shared dependencies are
# compiled once: those that read tables (polars, 3 minutes on two cores), and the agents with the lab.

TABLES  := -p trace-tables -p merger -p netsim -p netsim-rank -p congestion -p coflow -p job-profile -p mapreduce -p pages -p program -p causal -p replay -p hadoptic-tests
AGENTS  := -p trace -p man-pages -p sniffer -p dumpingd -p deploy -p lab -p test-support
PROGRAMS := target/release
JAR     := hadoop-patches/target/hadoptic-agent.jar
OUT     ?= out
LAB     ?= --links 100mbit --uplink 50mbit --size 128MB

.PHONY: help demo test lab bench scaling parallel analyses predict job-matrix fuzz lint agents static dist tables ranks needs clean

help:
	@echo "make demo    replay a real captured job, as it was and grown to 64 workers, over several fabrics; ends with where the reports lie"
	@echo "make test    set up what is missing and run all tests (as root: with real clusters)"
	@echo "make lab     start a real Hadoop cluster here, record a job, merge, replay (root)"
	@echo "make ranks   netsim-rank, for \`replay run --ranks\`: one network in several processes over MPI (apt-get install libmpich-dev libclang-dev)"
	@echo "make static  sniffer and dumpingd that run on any Linux of this architecture: target/static"
	@echo "make dist    a tarball and a .deb of all programs, the Java agent, manual pages, completions, units: target/package"
	@echo "make bench   benchmarks of the hot paths, beside peers; writes docs/benchmarks.md"
	@echo "make scaling how time and memory grow with the network (figure 14 of INSEE); writes docs/scaling.md"
	@echo "make parallel one run on the cores that are here, in both modes (figures 12 to 15 of FatTreeSim; minutes); writes docs/parallel-figures.md"
	@echo "make analyses what one may look at in a network (figure 9 of INSEE); writes docs/analyses.md"
	@echo "make predict jobs run on several networks, and predicted for each from the others: errors beside real runs (root, hours)"
	@echo "make job-matrix  jobs run in many sizes, and made of one recorded run: errors beside real runs (root, many hours)"
	@echo "make fuzz    ten minutes of fuzzing for each reader of foreign bytes (cargo-fuzz)"
	@echo "make lint    format, clippy and rustdoc without warnings"

tables:
	cargo build --release -p merger -p replay

ranks:
	@tests/mpi.sh || { echo "make ranks needs an MPI library and libclang: apt-get install libmpich-dev libclang-dev" >&2; exit 2; }
	cargo build --release $(TABLES) --features netsim-rank/mpi --bin netsim-rank

agents:
	cargo build --release $(AGENTS)
	mvn -q -B -f hadoop-patches/pom.xml package -DskipTests

static:
	@tests/static.sh

dist:
	@tests/dist.sh

needs:
	@tests/disk.sh
	@tests/needs.sh

demo: tables
	@tests/demo.sh $(OUT)/demo

test:
	@tests/run.sh

lab:
	@if [ "$$(id -u)" != 0 ]; then echo "make lab starts a cluster in network namespaces: run it as root" >&2; exit 2; fi
	@$(MAKE) --no-print-directory needs agents tables
	@tests/lab.sh $(OUT)/lab $(LAB)

bench:
	cargo build --release $(TABLES)
	cargo bench --profile release $(TABLES) --bench queue --bench fabric --bench packets --bench congestion
	cargo build --release --manifest-path tests/peers/Cargo.toml
	target/release/benchmarks --out docs

scaling:
	cargo build --release $(TABLES)
	target/release/scaling --out docs

parallel:
	cargo build --release $(TABLES)
	target/release/parallel --out docs

analyses:
	cargo build --release $(TABLES)
	target/release/analyses --out docs

predict:
	@if [ "$$(id -u)" != 0 ]; then echo "make predict runs clusters in network namespaces: run it as root" >&2; exit 2; fi
	@$(MAKE) --no-print-directory needs agents
	cargo build --release $(TABLES)
	target/release/lab setup
	target/release/lab setup --hadoop 1.2.1
	target/release/predict-matrix tests/prediction/plan.toml --out $(OUT)/predict

job-matrix:
	@if [ "$$(id -u)" != 0 ]; then echo "make job-matrix runs clusters in network namespaces: run it as root" >&2; exit 2; fi
	@$(MAKE) --no-print-directory needs agents
	cargo build --release $(TABLES)
	target/release/lab setup
	target/release/job-matrix tests/jobs/plan.toml --out $(OUT)/jobs

fuzz:
	@tests/fuzz.sh

# In a folder of its own: it neither waits for builds nor lets them wait, so that `make test` runs it beside its tests.
lint: MPI = $(shell tests/mpi.sh && echo --features netsim-rank/mpi)
lint: export CARGO_TARGET_DIR := target/lint
lint:
	cargo fmt --all --check
	cargo clippy --release $(TABLES) $(MPI) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps $(TABLES)
	if [ -e /usr/include/pcap/pcap.h ]; then cargo clippy --release $(AGENTS) --all-targets -- -D warnings; fi
	if [ -e /usr/include/pcap/pcap.h ]; then RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps $(AGENTS); fi

clean:
	rm -rf target $(OUT) hadoop-patches/target
