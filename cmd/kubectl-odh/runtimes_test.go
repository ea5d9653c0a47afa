package main

import (
	"testing"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

// status and doctor show why the manager rejects a runtime under its settings.
func TestStatusAndDoctorReportInvalidRuntimes(t *testing.T) {
	objects := fakecluster.Objects(t, "testdata/manager.yaml", "testdata/refused.yaml")
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), objects)
	status := run(t, cluster, "status")
	status.expect(t, 1, "ServingRuntime/endpoint", `no pods are created or changed: Invalid runtime Spec: spec.grpcDataEndpoint "port:nope" has no port`,
		"ServingRuntime/adapter", "nonesuch", "ServingRuntime/privileged", "the Pod Security level baseline does not allow",
		"ServingRuntime/scaled", "unknown autoscaler class [external]", "Idle    ", "ServingRuntime/good")
	doctor := run(t, cluster, "doctor")
	doctor.expect(t, 1, "ServingRuntime vision/endpoint: no pods are created or changed: Invalid runtime Spec: spec.grpcDataEndpoint", "ServingRuntime vision/adapter: no pods are created or changed: ",
		"ServingRuntime vision/privileged: ", "ServingRuntime vision/scaled: ", "models of the runtime are not served")
	doctor.expectNot(t, "vision/good", "vision/single")

	cluster.Forbid(func(r fakecluster.Request) bool {
		return r.Resource == "servingruntimes" || r.Name == "model-serving-config"
	})
	run(t, cluster, "doctor").expect(t, 1, "unknown runtimes not allowed to list servingruntimes.serving.kserve.io")
	run(t, cluster, "status").expect(t, 3, "Note: not allowed to list servingruntimes.serving.kserve.io in namespace vision")
}
