package resources

import (
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// serviceAccounts returns the ServiceAccounts of the servers and CronJobs. Pods mount the token explicitly. A ServiceAccount of a user is used
// unchanged and never deleted.
func serviceAccounts(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	add := func(account, app string) {
		config := corev1ac.ServiceAccount(account, in.Namespace).
			WithLabels(Labels(app)).
			WithAnnotations(m.Spec.ServiceAccountAnnotations).
			WithAutomountServiceAccountToken(false)
		desired = append(desired, apply.Object{Config: config, IgnoreIfForeign: true})
	}
	add(serviceAccountName(m), NameOf(m)) // the spec may name one of the others
	if m.Spec.GarbageCollection != nil && serviceAccountName(m) != gcServiceAccount {
		add(gcServiceAccount, Suffixed(GCBaseName, m))
	}
	if Archives(m) && serviceAccountName(m) != archivalServiceAccount {
		add(archivalServiceAccount, Suffixed(ArchivalBaseName, m))
	}
	return desired
}

// sharedRBAC allows servers and archival to read workspaces and their artifact stores and archives in all namespaces, but only Secrets of two
// names. The objects have the same name for every MLflow, so they have several owners.
func sharedRBAC(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	subjects := []*rbacv1ac.SubjectApplyConfiguration{accountSubject(serviceAccountName(m), in)}
	if Archives(m) && serviceAccountName(m) != archivalServiceAccount {
		subjects = append(subjects, accountSubject(archivalServiceAccount, in))
	}
	return clusterRole(sharedRoleName, apply.Shared, subjects,
		readRule("", "namespaces"),
		readRule("", "secrets").WithResourceNames(artifactSecret, archiveSecret),
		readRule("mlflow.kubeflow.org", "mlflowconfigs"))
}

// garbageCollectionRBAC allows garbage collection to read all workspaces and their artifact stores, and to remove experiments.
func garbageCollectionRBAC(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	return clusterRole(Suffixed(GCBaseName, m), apply.Controlled, []*rbacv1ac.SubjectApplyConfiguration{accountSubject(gcServiceAccount, in)},
		rbacv1ac.PolicyRule().WithAPIGroups("mlflow.kubeflow.org").WithResources("experiments").WithVerbs("get", "list", "update"),
		readRule("", "namespaces"),
		readRule("", "secrets").WithResourceNames(artifactSecret),
		readRule("mlflow.kubeflow.org", "mlflowconfigs"))
}

// clusterRole returns a ClusterRole and the ClusterRoleBinding of the same name.
func clusterRole(name string, ownership apply.Ownership, subjects []*rbacv1ac.SubjectApplyConfiguration,
	rules ...*rbacv1ac.PolicyRuleApplyConfiguration,
) apply.Desired {
	role := rbacv1ac.ClusterRole(name).WithLabels(Labels(name)).WithRules(rules...)
	binding := rbacv1ac.ClusterRoleBinding(name).WithLabels(Labels(name)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)).
		WithSubjects(subjects...)
	return apply.Desired{{Config: role, Ownership: ownership}, {Config: binding, Ownership: ownership}}
}

func accountSubject(name string, in Inputs) *rbacv1ac.SubjectApplyConfiguration {
	return rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(in.Namespace)
}

func readRule(group, resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
	return rbacv1ac.PolicyRule().WithAPIGroups(group).WithResources(resource).WithVerbs("get", "list", "watch")
}
