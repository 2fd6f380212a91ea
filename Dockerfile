# The service in a small image: built in one stage, run in another by a user without rights. See docs/service.md.
#   docker build --tag matchloom .
#   docker build --tag matchloom:networks --build-arg EXTRAS='[networks,encoder,archive]' .
# For a build that can be repeated, name the base by its digest: --build-arg BASE=debian:bookworm-slim@sha256:...
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ python3 python3-venv
WORKDIR /src
COPY pyproject.toml setup.py constraints.txt packaging/core.lock README.md LICENSE ./
COPY src src
ARG EXTRAS=""
# torch's own index has a build without CUDA, a tenth of the size; the core has no torch.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# What tests other packages is of no use here, nor is pip.
# The core's packages are those of the lock, file by file; those of extras have exact versions.
RUN python3 -m venv /opt/matchloom \
 && /opt/matchloom/bin/pip install --no-cache-dir --require-hashes --requirement core.lock \
 && /opt/matchloom/bin/pip install --no-cache-dir --constraint constraints.txt \
      ${EXTRAS:+${TORCH_INDEX:+--extra-index-url ${TORCH_INDEX}}} ".${EXTRAS}" \
 && /opt/matchloom/bin/pip uninstall --yes setuptools pip \
 && find /opt/matchloom -type d -name tests -path '*/site-packages/*' -prune -exec rm -rf {} +

FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc/* /usr/share/man/* \
 && useradd --no-log-init --no-create-home --uid 10001 --home-dir /tmp matchloom \
 && install --directory --owner 10001 /data /feedback
COPY --from=build /opt/matchloom /opt/matchloom
ENV PATH=/opt/matchloom/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=PASSIVE HOME=/tmp
USER 10001
WORKDIR /data
# /data has the collections. Thumbs are kept where the command says --feedback /feedback/thumbs.jsonl.
VOLUME ["/data", "/feedback"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python3", "-c", \
  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["matchloom", "serve", "--host", "0.0.0.0", "--port", "8000", "--no-feedback"]
CMD ["faq"]
