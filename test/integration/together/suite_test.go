// Package together_test runs all components together, with colliding names and with pairs of faults.
package together_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	own = "opendatahub"

	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
	patience     = 2 * time.Minute
	quiet        = 4 * time.Second

	// refuse is an annotation of namespaces with the resources that the manager must not write there.
	refuse = "together.test/refuse"
	// refusal is the message of the policy that reads the annotation.
	refusal = "refused by the policy of this namespace"
)

// One control plane, and one manager with all components and exactly the shipped rights.
var (
	env     *framework.Env
	account *operator.Installed
	manager *framework.Manager
)

func TestTogether(t *testing.T) { framework.Run(t, "All components together") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "together", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
	account = env.Installed
	manager = env.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: account.ServiceAccount, WebhookPort: account.WebhookPort,
		Args: []string{"--metrics-bind-address=127.0.0.1:0"},
		Env:  []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"},
	})
	Expect(env.Admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "model-serving-etcd"},
		StringData: map[string]string{"etcd_connection": `{"endpoints": "http://127.0.0.1:1", "root_prefix": "together"}`},
	})).To(Succeed())
	for _, c := range components {
		Eventually(func() error {
			return env.Admin.Create(ctx, c.object(metav1.NamespaceDefault, "ready"), client.DryRunAll)
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), "the webhooks answer")
	}
	installPolicy(ctx)
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })

// installPolicy denies the manager's writes to the resources in the annotation of a namespace, like Gatekeeper or Kyverno.
func installPolicy(ctx context.Context) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "together"},
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
					!("` + refuse + `" in namespaceObject.metadata.annotations) ||
					!(request.resource.resource in namespaceObject.metadata.annotations["` + refuse + `"].split(","))`,
				Message: refusal,
			}},
		},
	}
	Expect(env.Admin.Create(ctx, policy)).To(Succeed())
	Expect(env.Admin.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "together"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "together", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})).To(Succeed())
	probe := env.Namespace(ctx, "probe")
	annotate(ctx, probe, "configmaps")
	as := impersonating(manager.User)
	Eventually(func() error {
		return as.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: probe, Name: "probe"}}, client.DryRunAll)
	}).WithContext(ctx).WithTimeout(patience).Should(MatchError(ContainSubstring(refusal)), "the policy is in force")
}

// sample reads an object of config/samples.
func sample(file string) *unstructured.Unstructured {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	objects, err := framework.ReadObjects(filepath.Join(root, "config", "samples", file))
	Expect(err).NotTo(HaveOccurred())
	return objects[0]
}
