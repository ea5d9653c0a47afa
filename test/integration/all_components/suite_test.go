// Package all_components_test runs all components in one manager. It covers colliding names, single faults and pairs of faults, the kstatus
// of custom resources, and the reported causes of pods that do not run.
package all_components_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	operatorNamespace = "opendatahub"

	specTimeout = 5 * time.Minute
	waitTimeout = 2 * time.Minute
	idlePeriod  = 4 * time.Second

	// refuseAnnotation of a namespace lists the resources that the manager must not write in the namespace.
	refuseAnnotation = "all-components.test/refuse"
	// refusalMessage is the message of the policy that reads the annotation.
	refusalMessage = "refused by the policy of this namespace"
)

// One control plane, and one manager with all components and exactly the shipped permissions.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestAllComponents(t *testing.T) { framework.Run(t, "All components") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "all-components", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
	env.ClearNamespaces = true
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort,
		Args:        []string{"--metrics-bind-address=127.0.0.1:0"},
		Env:         []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"},
	})
	Expect(env.Admin.Create(ctx, framework.EtcdSecret(operatorNamespace))).To(Succeed())
	for _, c := range components {
		env.WaitAdmitted(ctx, c.object(metav1.NamespaceDefault, "ready"))
	}
	installPolicy(ctx)
}, NodeTimeout(framework.StartTimeout))

// installPolicy denies the manager's writes to the resources in refuseAnnotation of a namespace, like Gatekeeper or Kyverno.
func installPolicy(ctx context.Context) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "all-components"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "manager", Expression: `request.userInfo.username == "` + manager.User + `"`},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: `namespaceObject == null || !has(namespaceObject.metadata.annotations) ||
					!("` + refuseAnnotation + `" in namespaceObject.metadata.annotations) ||
					!(request.resource.resource in namespaceObject.metadata.annotations["` + refuseAnnotation + `"].split(","))`,
				Message: refusalMessage,
			}},
		},
	}
	Expect(env.Admin.Create(ctx, policy)).To(Succeed())
	Expect(env.Admin.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all-components"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "all-components", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})).To(Succeed())
	probe := env.Namespace(ctx, "probe")
	refuseWrites(ctx, probe, "configmaps")
	managerClient := env.Impersonate(rest.ImpersonationConfig{UserName: manager.User})
	Eventually(func() error {
		return managerClient.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: probe, Name: "probe"}}, client.DryRunAll)
	}).WithContext(ctx).WithTimeout(waitTimeout).Should(MatchError(ContainSubstring(refusalMessage)), "the policy is not enforced")
}
