#!/usr/bin/env bash
# A cluster on this machine with all that Fetcher needs, KEDA 2.16.0, and Fetcher by its chart.
# Needs docker, kind, kubectl, helm, python3. usage: config/kind/up.sh; again after a change; down.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
keda_manifest=${KEDA_MANIFEST:-https://github.com/kedacore/keda/releases/download/v2.16.0/keda-2.16.0.yaml}
secrets_file=config/kind/.env
kubectl() { command kubectl --context kind-fetcher "$@"; }
ours() { kubectl --namespace fetcher "$@"; }
applied() { "$@" --dry-run=client --output=yaml | ours apply --filename=-; }

kind get clusters | grep -qx fetcher || kind create cluster --config config/kind/cluster.yaml --wait 120s
docker build --tag fetcher:local .
kind load docker-image fetcher:local --name fetcher

kubectl apply --server-side --filename="$keda_manifest"
kubectl --namespace keda rollout status deployment/keda-operator --timeout=300s

python3 scripts/stack_secrets.py "$secrets_file"
kubectl create namespace fetcher --dry-run=client --output=yaml | kubectl apply --filename=-
# shellcheck source=/dev/null
. "$secrets_file"
names='APP_ENC_KEY|FETCHER_ACCESS_TOKEN|MONGO_PASSWORD|RABBITMQ_DEFAULT_PASS|REDIS_PASSWORD|OBJECT_STORAGE_SECRET_KEY'
applied ours create secret generic fetcher \
  --from-env-file=<(grep -E "^($names)=" "$secrets_file"; echo OBJECT_STORAGE_ACCESS_KEY_ID=fetcher)
# secrets are handed over by descriptors: a command line is seen by everybody
applied ours create secret generic fetcher-keda \
  --from-file=host=<(printf 'http://plugin:%s@rabbitmq.fetcher.svc:15672/' "$RABBITMQ_DEFAULT_PASS")
applied ours create secret generic dependencies \
  --from-file=MONGO_REPLICA_KEY=<(printf '%s' "$MONGO_REPLICA_KEY") \
  --from-file=rabbitmq-users.json=<(printf '{"vhosts": [{"name": "/"}],
    "users": [{"name": "plugin", "password_hash": "%s", "tags": ["administrator"],
               "hashing_algorithm": "rabbit_password_hashing_sha256"}],
    "permissions": [{"user": "plugin", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]}' \
    "$RABBITMQ_PASSWORD_HASH") \
  --from-file=s3.json=<(printf '{"identities": [{"name": "fetcher",
    "credentials": [{"accessKey": "fetcher", "secretKey": "%s"}],
    "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}' "$OBJECT_STORAGE_SECRET_KEY")
applied ours create configmap rabbitmq-definitions --from-file=config/rabbitmq/definitions.json

ours apply --filename=config/kind/dependencies.yaml
for name in mongodb rabbitmq valkey seaweedfs; do
  ours rollout status "deployment/$name" --timeout=300s
done
ours exec deployment/seaweedfs -- sh -c \
  'echo "s3.bucket.create -name fetcher" | weed shell -master=127.0.0.1:9333 -filer=127.0.0.1:8888'

helm upgrade --install fetcher config/helm/fetcher --kube-context kind-fetcher --namespace fetcher \
  --values config/kind/values.yaml --wait --timeout 5m
ours get scaledobject,pods
echo 'The API: kubectl --context kind-fetcher --namespace fetcher port-forward service/fetcher-manager 4006'
echo "Its token: FETCHER_ACCESS_TOKEN in $secrets_file"
