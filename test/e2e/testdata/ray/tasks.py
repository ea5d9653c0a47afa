# Runs a task on every node of a Ray cluster, and calls an actor on a worker, which survives this program. Prints the number of nodes that
# ran tasks and the number of calls of the actor.
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

ray.init(address="auto", namespace="e2e", log_to_driver=False, logging_level="ERROR")


@ray.remote(num_cpus=0, runtime_env={"env_vars": {"FRESH": str(ray.get_runtime_context().get_job_id())}})
def node():
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0)
class Counter:
    calls = 0

    def call(self):
        self.calls += 1
        return self.calls


nodes = [n for n in ray.nodes() if n["Alive"]]
responses = ray.get([node.options(scheduling_strategy=On(n["NodeID"], soft=False)).remote() for n in nodes], timeout=60)
worker = next(n["NodeID"] for n in nodes if "node:__internal_head__" not in n["Resources"])
counter = Counter.options(name="counter", lifetime="detached", get_if_exists=True, scheduling_strategy=On(worker, soft=False)).remote()
print(len(set(responses)), ray.get(counter.call.remote(), timeout=60))
