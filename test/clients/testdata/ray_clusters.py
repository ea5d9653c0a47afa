"""First steps with codeflare-sdk: a Ray cluster, its dashboard, its certificates."""

import os
import ssl

from codeflare_sdk import Cluster, ClusterConfiguration, generate_cert, list_all_clusters
from codeflare_sdk.ray import CodeFlareClusterStatus
from steps import NAMESPACE, log_step, eventually, captured

IMAGE = "quay.io/modh/ray:2.47.1-py311-cu121"


def configuration(**more):
    return ClusterConfiguration(
        name="demo", namespace=NAMESPACE, image=IMAGE, head_cpu_requests=1, head_cpu_limits=1, head_memory_requests=1,
        head_memory_limits=1, worker_cpu_requests=1, worker_cpu_limits=1, worker_memory_requests=1, worker_memory_limits=1, **more)


cluster = Cluster(configuration(num_workers=1))
cluster.apply()
cluster.wait_ready(timeout=120, dashboard_check=False)
assert cluster.status(print_to_console=False) == (CodeFlareClusterStatus.READY, True)
log_step("apply, wait_ready, status: ready")

address = cluster.cluster_dashboard_uri()
assert address == f"https://ai.example.org/ray/{NAMESPACE}/demo", address
log_step("cluster_dashboard_uri: the path of the HTTPRoute at the host of the Gateway")

listed = [c.name for c in list_all_clusters(NAMESPACE, print_to_console=False)]
assert listed == ["demo"], listed
log_step("list_all_clusters")

generate_cert.generate_tls_cert("demo", NAMESPACE)
generate_cert.export_env("demo", NAMESPACE)
context = ssl.create_default_context(cafile=os.environ["RAY_TLS_CA_CERT"])
context.load_cert_chain(os.environ["RAY_TLS_SERVER_CERT"], os.environ["RAY_TLS_SERVER_KEY"])
log_step("generate_tls_cert: a pair signed by the CA of the Secret")

changed = Cluster(configuration(num_workers=2))
with captured() as text:
    changed.apply()
assert "WARNING" not in text.getvalue()
cluster.wait_ready(timeout=120, dashboard_check=False)
log_step("apply with another number of workers")

cluster.down()
eventually(lambda: list_all_clusters(NAMESPACE, print_to_console=False) == [], "the cluster still exists")
log_step("down: no cluster remains")

# The last minor release with AppWrappers is 0.32.
if hasattr(ClusterConfiguration, "appwrapper"):
    wrapped = Cluster(configuration(num_workers=1, appwrapper=True))
    wrapped.apply()
    wrapped.wait_ready(timeout=120, dashboard_check=False)
    log_step("AppWrapper: apply, wait_ready")
    with captured() as text:
        Cluster(configuration(num_workers=2, appwrapper=True)).apply()
    output = text.getvalue()
    assert "immutable" in output, output
    assert "Access denied" not in output, output
    log_step("AppWrapper: a change is rejected as invalid, not as forbidden")
    wrapped.down()
    log_step("AppWrapper: down")
