package modelregistry_admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Databases of registries.
const (
	external  = "postgres: {host: db, username: u, database: d}"
	generated = "postgres: {generateDeployment: true}"
)

// names makes the names of registries unique in the cluster.
var names int

// registry returns a ModelRegistry of a version with a new name and a spec in YAML.
func registry(version schema.GroupVersion, namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	names++
	return framework.Manifest(fmt.Sprintf("{apiVersion: %s, kind: ModelRegistry, metadata: {name: registry-%d, namespace: %s}, spec: %s}", version, names, namespace, spec))
}

func beta(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return registry(v1beta1.GroupVersion, namespace, spec)
}

func alpha(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return registry(v1alpha1.GroupVersion, namespace, spec)
}

// createAndCleanUp creates an object, and deletes it at the end of the spec.
func createAndCleanUp(ctx context.Context, o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(deleteWithFinalizers, o, NodeTimeout(specTimeout))
	return o
}

// deleteWithFinalizers deletes an object, and removes the finalizer that admission adds: there is no leader to do it, and one that a later
// spec starts would migrate and finalize the object.
func deleteWithFinalizers(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o))).To(Succeed())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	Expect(client.IgnoreNotFound(env.Admin.Patch(ctx, o, patch))).To(Succeed())
}

// inVersion reads an object in a version.
func inVersion(ctx context.Context, version schema.GroupVersion, o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(version.WithKind(o.GetKind()))
	Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), out)).To(Succeed())
	return out
}

// specField returns a field of spec, or nil.
func specField(o *unstructured.Unstructured, path ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, append([]string{"spec"}, path...)...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// update reads an object in its version, changes it and updates it.
func update(ctx context.Context, o *unstructured.Unstructured, change func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, env.Admin, o, func() { change(o) })
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	GinkgoHelper()
	Expect(unstructured.SetNestedField(o.Object, value, append([]string{"spec"}, path...)...)).To(Succeed())
}

func remove(o *unstructured.Unstructured, path ...string) {
	unstructured.RemoveNestedField(o.Object, append([]string{"spec"}, path...)...)
}

// start runs a manager that is never elected, on the port of the webhook configurations.
func start(ctx context.Context, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: fmt.Sprintf("manager-%d", len(variables)), WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=" + components, "--leader-elect=true"}, Env: variables,
	})
}

// components whose webhooks are under test.
const components = "modelregistry,modelcatalog"

// replaceManager replaces the manager of the suite until the end of the spec.
func replaceManager(ctx context.Context, args []string, variables ...string) *framework.Manager {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { waitForWebhooks(ctx) }, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: "manager-instead", WebhookPort: env.Installed.WebhookPort, Args: args, Env: variables,
	})
}

// waitForWebhooks waits until the webhooks and the conversion respond, with or without an error.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitForWebhooks(ctx, alpha("default", "{rest: {}, grpc: {}, "+external+"}"))
}
