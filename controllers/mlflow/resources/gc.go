package resources

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// collector removes for good what users have deleted, in all workspaces. It
// works on the database itself and asks the server that keeps artifacts, as a
// client of its own, to delete them.
func collector(m *mlflowv1.MLflow, in Inputs) *batchv1ac.CronJobApplyConfiguration {
	authorities, server := collectorAuthorities(m, in), artifactServer(m)
	return cronJob(m, in, chore{
		name:     GCBaseName,
		schedule: m.Spec.GarbageCollection.Schedule,
		account:  gcAccount,
		command:  []string{"mlflow"},
		args:     collectorArgs(m),
		env: choreEnv(m, nil, []envVar{
			value("MLFLOW_TRACKING_URI", server.address(in)),
			value(envInsecureTLS, "false"),
			value("MLFLOW_TRACKING_AUTH", "kubernetes"),
		}, authorities.env),
		resources: resourcesOf(m.Spec.GarbageCollection.Resources, choreResources()),
		volume:    collectorUsesVolume(m),
		parts:     []part{withScratch(m), withVolume(m, collectorUsesVolume(m)), authorities},
	})
}

// collectorArgs name the store, because the command does not look for it in the
// environment. The URI of a Secret is filled in by the kubelet.
func collectorArgs(m *mlflowv1.MLflow) []string {
	backend := backendVar(m)
	uri := "$(" + envBackendStore + ")"
	if backend.Value != nil {
		uri = *backend.Value
	}
	args := []string{"gc", "--backend-store-uri=" + uri}
	if age := m.Spec.GarbageCollection.OlderThan; age != "" {
		args = append(args, "--older-than="+age)
	}
	return append(args, "--all-workspaces")
}

// collectorAuthorities are those of the server and the one that signed the
// certificate of the server, of which this is a client. On OpenShift that is
// the service CA. Elsewhere the Secret of the certificate names it, and what is
// trusted for that reason alone is trusted for calls to the server alone.
func collectorAuthorities(m *mlflowv1.MLflow, in Inputs) part {
	sources := caSources(m, in)
	if in.OpenShift {
		return withCABundle(m, in, append(sources, caSource{configMap: serviceCAName, path: serviceCAPath}))
	}
	authorities := withCABundle(m, in, append(sources, caSource{secret: artifactServer(m).Secret, path: serviceCAPath}))
	if len(sources) == 0 {
		authorities.env = []envVar{value("MLFLOW_TRACKING_SERVER_CERT_PATH", combinedBundle)}
	}
	return authorities
}

// collectorRBAC lets the collector find all workspaces and their artifact stores,
// and remove experiments in them.
func collectorRBAC(m *mlflowv1.MLflow, in Inputs) []runtime.ApplyConfiguration {
	name := Suffixed(GCBaseName, m)
	role := rbacv1ac.ClusterRole(name).
		WithLabels(Labels(name)).
		WithRules(
			rbacv1ac.PolicyRule().WithAPIGroups("mlflow.kubeflow.org").WithResources("experiments").WithVerbs("get", "list", "update"),
			readRule("", "namespaces"),
			readRule("", "secrets").WithResourceNames(artifactSecret),
			readRule("mlflow.kubeflow.org", "mlflowconfigs"),
		)
	binding := rbacv1ac.ClusterRoleBinding(name).
		WithLabels(Labels(name)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)).
		WithSubjects(accountSubject(gcAccount, in))
	return []runtime.ApplyConfiguration{role, binding}
}
