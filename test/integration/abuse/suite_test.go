// Package abuse_test covers attacks by users who may edit custom resources, and by pods that reach the port of the webhooks, against a real
// API server with the shipped roles, webhooks and defaults.
package abuse_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	operatorNamespace = "opendatahub"
	managerAccount    = "odh-platform-operator-controller-manager"
	webhookSecret     = "odh-platform-operator-webhook-cert"

	specTimeout = 2 * time.Minute
	waitTimeout = time.Minute
	poll        = 200 * time.Millisecond
	idlePeriod  = time.Second
)

// All specs share one control plane. They share one manager with all components and the shipped permissions and defaults, except for the
// specs of floods and of hosts, which stop it and start their own.
var (
	env     *framework.Env
	manager *framework.Manager
	// team is the namespace of a tenant.
	team string
)

func TestAbuse(t *testing.T) { framework.Run(t, "Abuse") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "abuse", cluster.Bare, framework.WithSets(cluster.KServe, cluster.KubeRay), framework.WithOperator("config/default"))
	team = env.Namespace(ctx, "team")
	for _, namespace := range []string{team, operatorNamespace} {
		for _, role := range []string{
			"modelregistry-editor-role", "modelmesh-servingruntime-editor-role", "codeflare-operator-appwrapper-editor-role",
			"modelmesh-predictor-editor-role", "modelmesh-inferenceservice-editor-role",
		} {
			bind(ctx, namespace, editorOf(role), role)
		}
		bind(ctx, namespace, rayUser, editorRole(ctx, "ray.io", "rayclusters"))
		bind(ctx, namespace, catalogEditor, "modelcatalog-editor-role")
		for _, role := range []string{"edit", "modelregistry-editor-role", "modelmesh-servingruntime-editor-role", "modelcatalog-editor-role"} {
			bind(ctx, namespace, developer, role)
		}
	}
	bindAll(ctx, mlflowEditor, "mlflow-operator-mlflow-edit")
	for _, username := range []string{clusterRuntimeEditor, developer} {
		bindAll(ctx, username, editorRole(ctx, "serving.kserve.io", "clusterservingruntimes"))
	}
	for _, name := range []string{"other-credentials", "model-serving-etcd"} {
		Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: meta(team, name)})).To(Succeed())
	}
	Expect(env.Admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta(team, "pipeline")})).To(Succeed())
	Expect(env.Admin.Create(ctx, framework.EtcdSecret(operatorNamespace))).To(Succeed())
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort,
		Env:         images,
	})
	for _, text := range []string{
		mlflow("{}"), registry("probe", "{}"), runtime("probe", "{}"), wrapper(job("probe", "{}")), rayCluster("probe", "{}"), catalog("catalog", "{}"),
	} {
		env.WaitAdmitted(ctx, object(team, text))
	}
}, NodeTimeout(framework.StartTimeout))

// images are the environment variables of images that the manager requires.
var images = []string{
	"MLFLOW_IMAGE=quay.io/example/mlflow:v3", "REST_IMAGE=quay.io/example/model-registry:v1", "POSTGRES_IMAGE=quay.io/example/postgresql:16",
	"KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1",
}

// admin is the administrator of the control plane, who is not impersonated.
const admin = ""

// clients caches the impersonating clients by user name.
var clients = map[string]client.Client{}

// as returns a client that impersonates a user in the group system:authenticated; for admin it returns env.Admin.
func as(name string) client.Client {
	GinkgoHelper()
	if c, found := clients[name]; found {
		return c
	}
	if name == admin {
		return env.Admin
	}
	clients[name] = env.Impersonate(rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}})
	return clients[name]
}

func user(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
}

func bind(ctx context.Context, namespace, name, role string) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta(namespace, name+"."+role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: user(name),
	})).To(Succeed())
}

func bindAll(ctx context.Context, name, role string) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("", name+"."+role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: user(name),
	})).To(Succeed())
}

func editorOf(role string) string { return "editor-of-" + strings.SplitN(role, "-editor", 2)[0] }

// editorRole creates a ClusterRole that grants only a resource and not its subresources, and returns its name.
func editorRole(ctx context.Context, group, resource string) string {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: meta("", resource+"-editor-role"),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		}},
	}
	Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, role))).To(Succeed())
	return role.Name
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// merge returns a merge patch, as kubectl patch --type=merge sends it.
func merge(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

func longText(length int) string { return strings.Repeat("x", length) }

func claim(name string) string {
	return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
}

// object decodes a manifest, and sets the namespace unless it is empty or the kind is MLflow.
func object(namespace, text string) *unstructured.Unstructured {
	GinkgoHelper()
	o := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed(), text)
	if namespace != "" && o.GetKind() != "MLflow" {
		o.SetNamespace(namespace)
	}
	return o
}

// mergeSpec merges the fields of a flow mapping into a spec.
func mergeSpec(base, spec string) string {
	GinkgoHelper()
	fields := map[string]any{}
	Expect(yaml.Unmarshal([]byte(base), &fields)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(spec), &fields)).To(Succeed(), spec)
	text, err := yaml.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll("  "+strings.TrimSpace(string(text)), "\n", "\n  ")
}

func mlflow(spec string) string {
	return "apiVersion: mlflow.opendatahub.io/v1\nkind: MLflow\nmetadata: {name: mlflow}\nspec:\n" +
		mergeSpec("{backendStoreUri: 'postgresql://db/mlflow', serveArtifacts: true, artifactsDestination: 's3://bucket'}", spec)
}

func registry(name, spec string) string {
	return "apiVersion: modelregistry.opendatahub.io/v1beta1\nkind: ModelRegistry\nmetadata: {name: " + name + "}\nspec:\n" +
		mergeSpec("{rest: {}, postgres: {host: db, username: u, database: d}, kubeRBACProxy: {}}", spec)
}

// runtime returns a ModelMesh ServingRuntime with one container, unless spec replaces it.
func runtime(name, spec string) string {
	return "apiVersion: serving.kserve.io/v1alpha1\nkind: ServingRuntime\nmetadata: {name: " + name + "}\nspec:\n" +
		mergeSpec("{multiModel: true, grpcEndpoint: 'port:9000', containers: [{name: server, image: quay.io/example/server}]}", spec)
}

func rayCluster(name, pod string) string {
	return "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: " + name + "}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec: " +
		flow(mergeSpec("{containers: [{name: head, image: i}]}", pod)) + "}}}}"
}

func job(name, pod string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + "}, spec: {template: {spec: " + flow(mergeSpec("{restartPolicy: Never, containers: [{name: c, image: i}]}", pod)) + "}}}"
}

// flow converts YAML into a single line.
func flow(text string) string {
	GinkgoHelper()
	body, err := yaml.YAMLToJSON([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

func wrapper(components ...string) string {
	text := "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {generateName: w-}\nspec:\n  components:\n"
	for _, component := range components {
		text += "    - template: " + component + "\n"
	}
	return text
}
