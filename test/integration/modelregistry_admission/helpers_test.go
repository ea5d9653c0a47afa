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

// Databases in the spec of a registry.
const (
	externalDatabase  = "postgres: {host: db, username: u, database: d}"
	generatedDatabase = "postgres: {generateDeployment: true}"
)

// registryCount makes the names of registries unique in the cluster.
var registryCount int

// newRegistry returns a ModelRegistry of a version with a unique name and a spec in YAML.
func newRegistry(version schema.GroupVersion, namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	registryCount++
	return framework.Manifest(fmt.Sprintf("{apiVersion: %s, kind: ModelRegistry, metadata: {name: registry-%d, namespace: %s}, spec: %s}", version, registryCount, namespace, spec))
}

func newBetaRegistry(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return newRegistry(v1beta1.GroupVersion, namespace, spec)
}

func newAlphaRegistry(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return newRegistry(v1alpha1.GroupVersion, namespace, spec)
}

// createAndCleanUp creates an object, and deletes it after the spec.
func createAndCleanUp(ctx context.Context, o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(deleteWithFinalizers, o, NodeTimeout(specTimeout))
	return o
}

// deleteWithFinalizers deletes an object and removes its finalizers, because no controller runs that would remove the finalizer that
// admission adds. The controllers of a later spec must not find the object.
func deleteWithFinalizers(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o))).To(Succeed())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	Expect(client.IgnoreNotFound(env.Admin.Patch(ctx, o, patch))).To(Succeed())
}

// getInVersion returns an object as a client of a version reads it.
func getInVersion(ctx context.Context, version schema.GroupVersion, o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(version.WithKind(o.GetKind()))
	Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), live)).To(Succeed())
	return live
}

// specField returns a field of spec, or nil.
func specField(o *unstructured.Unstructured, path ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, append([]string{"spec"}, path...)...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// updateObject reads an object in its version, mutates it and updates it.
func updateObject(ctx context.Context, o *unstructured.Unstructured, mutate func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, env.Admin, o, func() { mutate(o) })
}

func setSpecField(o *unstructured.Unstructured, value any, path ...string) {
	GinkgoHelper()
	Expect(unstructured.SetNestedField(o.Object, value, append([]string{"spec"}, path...)...)).To(Succeed())
}

func removeSpecField(o *unstructured.Unstructured, path ...string) {
	unstructured.RemoveNestedField(o.Object, append([]string{"spec"}, path...)...)
}

// startManager starts a manager that is never elected, on the port of the webhook configurations.
func startManager(ctx context.Context, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: fmt.Sprintf("manager-%d", len(variables)), WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=" + components, "--leader-elect=true"}, Env: variables,
	})
}

// components are the components whose webhooks are tested.
const components = "modelregistry,modelcatalog"

// replaceManager starts a manager in place of that of the suite, which is restarted after the spec.
func replaceManager(ctx context.Context, args []string, variables ...string) *framework.Manager {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { waitForWebhooks(ctx) }, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: "manager-replacement", WebhookPort: env.Installed.WebhookPort, Args: args, Env: variables,
	})
}

// waitForWebhooks waits until the admission and conversion webhooks respond, whether they allow or deny the request.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitForWebhooks(ctx, newAlphaRegistry("default", "{rest: {}, grpc: {}, "+externalDatabase+"}"))
}
