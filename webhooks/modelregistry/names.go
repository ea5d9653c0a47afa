package modelregistry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Objects of a registry bear its name, or begin with it. These names, and names with these beginnings and ends, belong to objects that
// something else in the namespace has or may want: accounts of Kubernetes and OpenShift, other components, other registries.
var (
	reservedNames = []string{
		"default", "builder", "deployer", "pipeline",
		"mlflow", "mlflow-sa", "mlflow-gc", "mlflow-gc-sa", "mlflow-trace-archival", "mlflow-trace-archival-sa",
		"etcd", "modelmesh-serving", "modelmesh-controller",
	}
	reservedBeginnings = []string{names.OperatorName, "modelmesh-serving-"}
	reservedEnds       = []string{"-catalog", databaseSuffix, "-head-svc"}
)

// ReservedName says why a registry should not have a name; empty when it may. Those that exist keep theirs: no object of somebody else
// is touched for it.
func ReservedName(name string) string {
	begins := func(beginning string) bool { return strings.HasPrefix(name, beginning) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	if slices.Contains(reservedNames, name) || slices.ContainsFunc(reservedBeginnings, begins) || slices.ContainsFunc(reservedEnds, ends) {
		return fmt.Sprintf("objects called %s belong to something else, or may one day: choose another name", name)
	}
	return ""
}
