#!/usr/bin/env bash
# Delete the cluster of up.sh, with everything in it.
set -euo pipefail
kind delete cluster --name fetcher
