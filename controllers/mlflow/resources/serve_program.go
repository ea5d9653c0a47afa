package resources

import (
	_ "embed"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// serveProgram starts the server once no other one holds the lock on the volume, and stops it fast and clean. A Deployment
// replaces a pod that is being deleted while its server still runs, and two servers would write to one SQLite file. It does
// nothing where the stores, which may stand in Secrets, are no SQLite files.
//
//go:embed serve.py
var serveProgram string

// serverLock is the file that the server locks.
const serverLock = storagePath + "/.mlflow-server.lock"

// serverGrace is how long a server may take to stop, in seconds.
const serverGrace = 60

// mayShareFile reports that a second server could open a SQLite file that this one uses. Several replicas on one volume are
// what their user asked for.
func mayShareFile(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && resources.OrOne(m.Spec.Replicas) == 1 && metadataMayBeFiles(m)
}

// serveAlone makes a container of the server the only one on its volume, where that matters.
func serveAlone(m *mlflowv1.MLflow, pod *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	if mayShareFile(m) {
		container.Command = []string{"python3.12", "-c", serveProgram, serverLock, "mlflow"}
		pod.WithTerminationGracePeriodSeconds(serverGrace)
	}
}
