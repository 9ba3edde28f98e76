"""JSON schemas of the Kubernetes objects that the chart makes: the fields in use, and no others.

Written by hand after the API reference of Kubernetes 1.27 (apps/v1, core/v1, policy/v1,
networking.k8s.io/v1, autoscaling/v2), Prometheus Operator's ServiceMonitor
(monitoring.coreos.com/v1) and KEDA 2.16: the pages "ScaledObject specification" and "RabbitMQ
Queue" of its documentation, and its repository's ``config/crd/bases``. There, a ScaledObject's
``spec`` has ``scaleTargetRef`` and ``triggers`` required, counts and periods are int32, and every
value of a trigger's ``metadata`` is a text; what ``metadata`` means is the scaler's own, so its
page decides that.
"""

from typing import Any, Final

Schema = dict[str, Any]


def _one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def _object(optional: Schema | None = None, /, **required: Schema) -> Schema:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": (optional or {}) | required,
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": items}


TEXT: Final[Schema] = {"type": "string", "minLength": 1}
TRUTH: Final[Schema] = {"type": "boolean"}
TRUE: Final[Schema] = {"const": True}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
POSITIVE: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
PORT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 65535}
NAME: Final[Schema] = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
LABEL_KEY: Final = r"^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
LABELS: Final[Schema] = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY},
    "additionalProperties": {"type": "string", "pattern": r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61})?$"},
}
ANNOTATIONS: Final[Schema] = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY},
    "additionalProperties": {"type": "string"},
}
QUANTITY: Final[Schema] = {"type": "string", "pattern": r"^[0-9]+(m|Ki|Mi|Gi|Ti)?$"}
SELECTOR: Final = _object({"matchLabels": LABELS})
NAMED: Final = _object(name=NAME)
ANYTHING: Final[Schema] = {"type": "object", "minProperties": 1}

_METADATA: Final = _object({"annotations": ANNOTATIONS}, name=NAME, labels=LABELS)
_RESOURCES: Final = {"type": "object", "additionalProperties": QUANTITY}
_PROBE: Final = _object(
    httpGet=_object(path=_one_of("/health", "/readyz"), port=_one_of("http")),
    periodSeconds=POSITIVE,
    timeoutSeconds=POSITIVE,
    failureThreshold=POSITIVE,
)
_CONTAINER: Final = _object(
    name=NAME,
    image={"type": "string", "pattern": r"^[a-z0-9./:_-]+:[A-Za-z0-9_.-]+$"},
    imagePullPolicy=_one_of("Always", "IfNotPresent", "Never"),
    args=_list(TEXT),
    securityContext=_object(
        allowPrivilegeEscalation={"const": False},
        readOnlyRootFilesystem=TRUE,
        capabilities=_object(drop={"const": ["ALL"]}),
    ),
    envFrom=_list({"oneOf": [_object(configMapRef=NAMED), _object(secretRef=NAMED)]}),
    env=_list(_object({"value": {"type": "string"}, "valueFrom": ANYTHING}, name=TEXT)),
    ports=_list(_object(name=NAME, containerPort=PORT)),
    startupProbe=_PROBE,
    livenessProbe=_PROBE,
    readinessProbe=_PROBE,
    resources=_object(requests=_RESOURCES, limits=_RESOURCES),
    volumeMounts=_list(
        _object(
            {"readOnly": {"type": "boolean"}},
            name=NAME,
            mountPath={"type": "string", "pattern": "^/"},
        )
    ),
)
_POD: Final = _object(
    {
        "imagePullSecrets": _list(NAMED),
        "nodeSelector": LABELS,
        "tolerations": _list(ANYTHING),
        "affinity": ANYTHING,
        "topologySpreadConstraints": _list(ANYTHING),
    },
    serviceAccountName=NAME,
    automountServiceAccountToken={"const": False},
    enableServiceLinks={"const": False},
    terminationGracePeriodSeconds=POSITIVE,
    securityContext=_object(
        runAsNonRoot=TRUE,
        runAsUser={"const": 1001},
        runAsGroup={"const": 1001},
        fsGroup={"const": 1001},
        seccompProfile=_object(type=_one_of("RuntimeDefault")),
    ),
    containers=_list(_CONTAINER),
    volumes=_list(
        {
            "oneOf": [
                _object(name=NAME, emptyDir=_object(sizeLimit=QUANTITY)),
                _object(name=NAME, secret=_object(secretName=NAME, defaultMode=COUNT)),
            ]
        }
    ),
)
_TARGET: Final = _object(apiVersion=_one_of("apps/v1"), kind=_one_of("Deployment"), name=NAME)
_PEER: Final = _object(
    {"podSelector": SELECTOR, "namespaceSelector": SELECTOR, "ipBlock": ANYTHING}
)
_RULE_PORTS: Final = _list(_object(port=PORT, protocol=_one_of("TCP", "UDP")))
_RABBITMQ_TRIGGER: Final = _object(
    type=_one_of("rabbitmq"),
    authenticationRef=_object({"kind": TEXT}, name=NAME),
    metadata=_object(
        protocol=_one_of("http"),
        excludeUnacknowledged=_one_of("false"),
        mode=_one_of("QueueLength"),
        queueName=TEXT,
        vhostName=TEXT,
        value={"type": "string", "pattern": "^[1-9][0-9]*$"},
        activationValue={"type": "string", "pattern": "^[0-9]+$"},
    ),
)


def _kind(api_version: str, kind: str, **body: Schema) -> tuple[tuple[str, str], Schema]:
    head = {"apiVersion": {"const": api_version}, "kind": {"const": kind}, "metadata": _METADATA}
    return (api_version, kind), _object(**head, **body)


SCHEMAS: Final[dict[tuple[str, str], Schema]] = dict(
    (
        _kind(
            "v1", "ConfigMap", data={"type": "object", "additionalProperties": {"type": "string"}}
        ),
        _kind("v1", "ServiceAccount", automountServiceAccountToken={"const": False}),
        _kind(
            "v1",
            "Service",
            spec=_object(
                {
                    "type": _one_of("ClusterIP", "NodePort", "LoadBalancer"),
                    "clusterIP": _one_of("None"),
                },
                ports=_list(_object(name=NAME, port=PORT, targetPort=_one_of("http"))),
                selector=LABELS,
            ),
        ),
        _kind(
            "apps/v1",
            "Deployment",
            spec=_object(
                {"replicas": COUNT},
                strategy=_object(
                    type=_one_of("RollingUpdate"),
                    rollingUpdate=_object(maxSurge=POSITIVE, maxUnavailable=COUNT),
                ),
                selector=SELECTOR,
                template=_object(
                    metadata=_object(labels=LABELS, annotations=ANNOTATIONS), spec=_POD
                ),
            ),
        ),
        _kind(
            "policy/v1",
            "PodDisruptionBudget",
            spec=_object(
                maxUnavailable={"anyOf": [POSITIVE, {"type": "string", "pattern": "^[0-9]+%$"}]},
                selector=SELECTOR,
            ),
        ),
        _kind(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec=_object(
                {"egress": _list(_object({"to": _list(_PEER), "ports": _RULE_PORTS}))},
                podSelector=SELECTOR,
                policyTypes=_list(_one_of("Ingress", "Egress")),
                ingress=_list(_object(**{"ports": _RULE_PORTS, "from": _list(_PEER)})),
            ),
        ),
        _kind(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec=_object(
                scaleTargetRef=_TARGET,
                minReplicas=POSITIVE,
                maxReplicas=POSITIVE,
                metrics=_list(
                    _object(
                        type=_one_of("Resource"),
                        resource=_object(
                            name=_one_of("cpu", "memory"),
                            target=_object(
                                type=_one_of("Utilization"), averageUtilization=POSITIVE
                            ),
                        ),
                    )
                ),
            ),
        ),
        _kind(
            "keda.sh/v1alpha1",
            "TriggerAuthentication",
            spec=_object(secretTargetRef=_list(_object(parameter=TEXT, name=NAME, key=TEXT))),
        ),
        _kind(
            "keda.sh/v1alpha1",
            "ScaledObject",
            spec=_object(
                scaleTargetRef=_TARGET,
                pollingInterval=POSITIVE,
                cooldownPeriod=COUNT,
                minReplicaCount=COUNT,
                maxReplicaCount=POSITIVE,
                advanced=_object(
                    horizontalPodAutoscalerConfig=_object(
                        behavior=_object(
                            scaleDown=_object(
                                stabilizationWindowSeconds={
                                    "type": "integer",
                                    "minimum": 0,
                                    "maximum": 3600,
                                }
                            )
                        )
                    )
                ),
                triggers=_list(_RABBITMQ_TRIGGER),
            ),
        ),
        _kind(
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            spec=_object(
                jobLabel=TEXT,
                selector=SELECTOR,
                endpoints=_list(_object(port=TEXT, path=TEXT, interval=TEXT)),
            ),
        ),
    )
)
