# The README's two commands in a container: `docker build -t rangescope .`, then `docker run --rm rangescope profile -- llm`.
# Sampling the CPU needs `--cap-add PERFMON` (or kernel.perf_event_paranoid <= 2), a GPU `--gpus all`.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git
COPY . /src
WORKDIR /src
RUN ./dev build rangescope rangescope_inject rangescope_mpi rangescope_man llm && DESTDIR=/image cmake --install build/release --prefix /usr/local

FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends libfmt9 libyaml-cpp0.7 libsqlite3-0 libre2-9 libzstd1 zlib1g \
      libsimdjson14 libdw1 libelf1 && rm -rf /var/lib/apt/lists/*
COPY --from=build /image/ /
COPY --from=build /src/build/release/bin/llm /usr/local/bin/llm
ENTRYPOINT ["rangescope"]
