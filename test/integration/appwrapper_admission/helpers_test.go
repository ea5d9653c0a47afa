package appwrapper_admission_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Templates of components.
const (
	pod        = "{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {containers: [{name: main, image: 'example.com/a:1'}]}}"
	service    = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: 'example.com/a:1'}]}}}}"
	jobSet     = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [" +
		"{name: a, replicas: 1, template: {spec: {parallelism: 1, completions: 1, template: {spec: {containers: [{name: main, image: a}]}}}}}," +
		"{name: b, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, image: a}]}}}}}]}}"
	rayCluster = "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {" +
		"headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: a}]}}}," +
		"workerGroupSpecs: [{groupName: w, replicas: 7, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: a}]}}}]}}"
	rayJob = "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {entrypoint: x, shutdownAfterJobFinishes: true, rayClusterSpec: {" +
		"headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: a}]}}}," +
		"workerGroupSpecs: [{groupName: w, replicas: 2, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: a}]}}}]}}}"
	pyTorch = "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: t}, spec: {pytorchReplicaSpecs: {" +
		"Master: {template: {spec: {containers: [{name: pytorch, image: a}]}}}," +
		"Worker: {replicas: 4, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}}"
)

func job(parallelism, completions string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: " + parallelism + ", completions: " + completions +
		", template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'example.com/a:1'}]}}}}"
}

// startManager runs a manager on the port of the installed webhook configurations.
func startManager(ctx context.Context, args ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Args: args, WebhookPort: env.Installed.WebhookPort,
	})
}

// waitForWebhooks waits until the API server reaches the webhooks.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, wrapper(metav1.NamespaceDefault, component(pod)))
}

func stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(waitForWebhooks, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
}

// component returns an entry of spec.components with the declared pod sets.
func component(template string, sets ...string) string {
	text := "- template: " + template + "\n"
	if len(sets) > 0 {
		text += "  podSets: [" + strings.Join(sets, ", ") + "]\n"
	}
	return text
}

// wrapper returns a suspended AppWrapper.
func wrapper(namespace string, components ...string) *v1beta2.AppWrapper {
	GinkgoHelper()
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "aw-"}}
	aw.Spec.Suspend = true
	aw.Spec.Components = []v1beta2.AppWrapperComponent{}
	Expect(yaml.Unmarshal([]byte(strings.Join(components, "")), &aw.Spec.Components)).To(Succeed())
	return aw
}

// expectAdmitted creates an AppWrapper and expects its admission.
func expectAdmitted(ctx context.Context, aw *v1beta2.AppWrapper) *v1beta2.AppWrapper {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, aw)).To(Succeed())
	return aw
}

// update changes an AppWrapper as a user, and retries after a conflict.
func update(ctx context.Context, user client.Client, aw *v1beta2.AppWrapper, change func(*v1beta2.AppWrapper)) error {
	GinkgoHelper()
	return env.Update(ctx, user, aw, func() { change(aw) })
}

// newLimitedClient returns a client of a user who has all permissions for AppWrappers and Pods of one namespace, and only get for
// Deployments.
func newLimitedClient(ctx context.Context, namespace string) client.Client {
	GinkgoHelper()
	allVerbs := []string{"*"}
	Expect(env.Admin.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limited"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1beta2.GroupVersion.Group}, Resources: []string{"appwrappers"}, Verbs: allVerbs},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: allVerbs},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
		},
	})).To(Succeed())
	bind(ctx, namespace, "limited", "Role")
	env.WaitAllowed(ctx, "limited", authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: v1beta2.GroupVersion.Group, Resource: "appwrappers"})
	return env.Impersonate(rest.ImpersonationConfig{UserName: "limited", UID: "uid:of/limited", Groups: []string{"team"}, Extra: map[string][]string{"department": {"research"}}})
}

// bind grants a role in a namespace to the user limited.
func bind(ctx context.Context, namespace, role, kind string) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "limited-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "limited"}},
	})).To(Succeed())
}

func raw(text string) runtime.RawExtension {
	GinkgoHelper()
	content, err := yaml.YAMLToJSON([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: content}
}

// disabledOptions returns the options of a manager with the component disabled, on the same webhook port.
func disabledOptions() framework.ManagerOptions {
	return framework.ManagerOptions{
		Name: "manager-disabled", WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=*,-appwrapper"}, Env: []string{"MLFLOW_IMAGE=example.com/mlflow:1"},
	}
}

func legacyConfig() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: legacyConfigMap}}
}
