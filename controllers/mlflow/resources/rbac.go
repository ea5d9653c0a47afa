package resources

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// accounts are the identities of the server and of the jobs beside it. Pods that
// need a token ask for it themselves. An account that a user made is used as it
// is: it gets no annotation, and is not deleted.
func accounts(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	apps := map[string]string{}
	wanted := []string{accountName(m)}
	if m.Spec.GarbageCollection != nil {
		wanted, apps[gcAccount] = append(wanted, gcAccount), Suffixed(GCBaseName, m)
	}
	if Archives(m) {
		wanted, apps[archivalAccount] = append(wanted, archivalAccount), Suffixed(ArchivalBaseName, m)
	}
	apps[accountName(m)] = NameOf(m) // the spec may name one of the others
	var desired apply.Desired
	for i, name := range wanted {
		if slices.Contains(wanted[:i], name) {
			continue
		}
		account := corev1ac.ServiceAccount(name, in.Namespace).
			WithLabels(Labels(apps[name])).
			WithAnnotations(m.Spec.ServiceAccountAnnotations).
			WithAutomountServiceAccountToken(false)
		desired = append(desired, apply.Object{Config: account, Yields: true})
	}
	return desired
}

// sharedRBAC lets server and archiver find the workspaces with their artifact stores and
// archives in all namespaces. The objects carry one name whatever the MLflow is called, so
// other owners are left beside ours. Every namespace may be a workspace with an
// artifact store and an archive of its own, so the right to read Secrets is that
// wide, and held narrow by the two names that it is good for.
func sharedRBAC(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	role := rbacv1ac.ClusterRole(sharedRoleName).
		WithLabels(Labels(sharedRoleName)).
		WithRules(
			readRule("", "namespaces"),
			readRule("", "secrets").WithResourceNames(artifactSecret, archiveSecret),
			readRule("mlflow.kubeflow.org", "mlflowconfigs"),
		)
	binding := rbacv1ac.ClusterRoleBinding(sharedRoleName).
		WithLabels(Labels(sharedRoleName)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(sharedRoleName)).
		WithSubjects(accountSubject(accountName(m), in))
	if Archives(m) && accountName(m) != archivalAccount {
		binding.WithSubjects(accountSubject(archivalAccount, in))
	}
	return apply.Desired{
		{Config: role, Ownership: apply.Shared},
		{Config: binding, Ownership: apply.Shared},
	}
}

func accountSubject(name string, in Inputs) *rbacv1ac.SubjectApplyConfiguration {
	return rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(in.Namespace)
}

func readRule(group, resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
	return rbacv1ac.PolicyRule().WithAPIGroups(group).WithResources(resource).WithVerbs("get", "list", "watch")
}
