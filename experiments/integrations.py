"""Which frameworks and clients are installed here, and whether matchloom works inside them: prints docs' table.

    python -m experiments.integrations

Each has its test in tests/integrations, which is skipped where the package is absent.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

PACKAGES = {
    "cohere": "test_cohere",
    "rerankers": "test_rerankers",
    "openai": "test_openai",
    "langchain-core": "test_langchain",
    "llama-index-core": "test_llama_index",
    "haystack-ai": "test_haystack",
    "pyterrier": "test_pyterrier",
    "sentence-transformers": "test_sentence_transformers_evaluators",
    "mteb": "test_mteb",
    "ir-datasets": "test_ir_datasets",
    "scikit-learn": "test_scikit_learn",
    "mcp": "test_mcp",
}


def main() -> int:
    """Run the tests of what is installed and print a row for each."""
    failed = 0
    print("| package | version | |\n|---|---|---|")
    for package, test in PACKAGES.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            print(f"| {package} | not installed | not tried |", flush=True)
            continue
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/integrations", "-k", test]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        failed += done.returncode != 0
        print(f"| {package} | {found} | {'works' if done.returncode == 0 else 'fails'} |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
