# The service in a small image: built in one stage, run in another by a user without rights. See docs/service.md.
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY src src
# torch's own index has a build without CUDA, a tenth of the size.
RUN python -m venv /opt/matchloom \
 && /opt/matchloom/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
      --constraint constraints.txt .

FROM python:3.11-slim
COPY --from=build /opt/matchloom /opt/matchloom
RUN useradd --system --uid 10001 --home-dir /tmp matchloom && mkdir /data
ENV PATH=/opt/matchloom/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=PASSIVE HOME=/tmp
USER 10001
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-c", \
  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["matchloom", "serve", "--host", "0.0.0.0", "--port", "8000", "--no-feedback"]
