package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// fluxManager is the field manager of Flux.
const fluxManager = "kustomize-controller"

// oauthProxyCase is the name of the spec with a registry whose deprecated oauthProxy the webhook moves to kubeRBACProxy.
const oauthProxyCase = "empty registry, oauthProxy"

// Users may move from client-side to server-side apply with kubectl, with Argo CD, which migrates managed fields like kubectl, and with Flux.
var _ = Describe("server-side apply takes over fields of client-side apply in", func() {
	all := manifests()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		It(name, func(ctx SpecContext) {
			object := all[name].DeepCopy()
			if !slices.Contains([]string{"MLflow", "AIHub", "MLflowOperator", "ClusterServingRuntime"}, object.GetKind()) {
				object.SetNamespace(env.Namespace(ctx, "applied"))
			}
			apply := func(args ...string) *unstructured.Unstructured {
				GinkgoHelper()
				text, err := json.Marshal(object)
				Expect(err).NotTo(HaveOccurred())
				if _, err = env.Instance.Kubectl(ctx, string(text), append([]string{"apply", "-f", "-"}, args...)...); err != nil && strings.Contains(err.Error(), "the cluster serves no") {
					Skip(err.Error())
				}
				Expect(err).NotTo(HaveOccurred())
				stored := object.DeepCopy()
				env.Get(ctx, stored)
				return stored
			}
			deleteObject := func(ctx context.Context) {
				Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object.DeepCopy()))).To(Succeed())
				env.WaitDeleted(ctx, object.DeepCopy())
			}
			DeferCleanup(deleteObject)

			apply()
			if object.GetKind() == "RayCluster" || name == oauthProxyCase { // the webhook changes an atomic field
				apply("--server-side", "--force-conflicts")
			}
			apply("--server-side")
			if object.GetKind() == "ModelRegistry" { // an empty object enables a feature, so it must not be dropped
				stored, proxyField := apply("--server-side"), "oauthProxy"
				if object.GroupVersionKind().Version == "v1beta1" {
					proxyField = "kubeRBACProxy"
				}
				for key := range object.Object["spec"].(map[string]any) {
					key = strings.Replace(key, "oauthProxy", proxyField, 1)
					Expect(stored.Object["spec"]).To(HaveKeyWithValue(key, Not(BeNil())))
				}
			}
			Eventually(func() int64 { // until the manager has moved deprecated fields
				first := apply("--server-side").GetGeneration()
				return apply("--server-side").GetGeneration() - first
			}).WithContext(ctx).Should(BeZero())

			deleteObject(ctx)
			apply()
			Eventually(func() error { return migrate(ctx, object.DeepCopy()) }).WithContext(ctx).Should(Succeed())
			for range 2 {
				Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(fluxManager), client.ForceOwnership)).To(Succeed())
			}
		}, NodeTimeout(pageTimeout))
	}
})

// migrate transfers the managed fields of kubectl to Flux, as Flux does before it applies. It returns an error on a conflict.
func migrate(ctx context.Context, object *unstructured.Unstructured) error {
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	fields := object.GetManagedFields()
	index := slices.IndexFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "kubectl-client-side-apply" })
	if index < 0 {
		return errors.New("no managed fields of kubectl-client-side-apply")
	}
	fields[index].Manager, fields[index].Operation = fluxManager, metav1.ManagedFieldsOperationApply
	object.SetManagedFields(fields)
	return env.Admin.Update(ctx, object, client.FieldOwner(fluxManager))
}

// manifests returns the custom resources of config/samples and docs/components, and some with empty objects, by name of the spec.
func manifests() map[string]*unstructured.Unstructured {
	all := map[string]*unstructured.Unstructured{}
	samples, err := filepath.Glob("../../../config/samples/[^k]*.yaml")
	pages, err2 := filepath.Glob("../../../docs/components/*.md")
	if err != nil || err2 != nil || len(samples) < 20 || len(pages) < 7 {
		panic(fmt.Sprintf("found %d samples and %d component pages, want at least 20 and 7: are the paths right?", len(samples), len(pages)))
	}
	add := func(from string, objects []*unstructured.Unstructured) {
		for i, object := range objects {
			if strings.Contains(object.GroupVersionKind().Group, ".") {
				all[from+" "+strconv.Itoa(i)+" "+object.GetKind()] = object
			}
		}
	}
	for _, path := range samples {
		objects, err := framework.ReadObjects(path)
		if err != nil {
			panic(err)
		}
		add(filepath.Base(path), objects)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		for _, block := range docs.Blocks(string(text)) {
			if block.Language == "yaml" && block.Value("file") != "" {
				add(filepath.Base(path)+":"+strconv.Itoa(block.Line), []*unstructured.Unstructured{parse(block.Text)})
			}
		}
	}
	for name, text := range map[string]string{
		"empty registry":           `{apiVersion: modelregistry.opendatahub.io/v1beta1, kind: ModelRegistry, spec: {rest: {}, grpc: {}, postgres: {generateDeployment: true}, kubeRBACProxy: {}}}`,
		oauthProxyCase:             `{apiVersion: modelregistry.opendatahub.io/v1beta1, kind: ModelRegistry, spec: {rest: {}, mysql: {host: h, database: d, username: u}, oauthProxy: {}}}`,
		"empty registry, v1alpha1": `{apiVersion: modelregistry.opendatahub.io/v1alpha1, kind: ModelRegistry, spec: {rest: {}, grpc: {}, postgres: {host: h, database: d}, oauthProxy: {}}}`,
		"empty catalog":            `{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: catalog}, spec: {}}`,
		"empty mlflow": `{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow}, spec: {serveArtifacts: true, backendStoreUri: "sqlite:////mlflow/mlflow.db", storage: {}, migration: {},
			tls: {}, artifactsServer: {}, traceArchival: {}}}`,
	} {
		object := parse(text)
		if object.GetName() == "" {
			object.SetName("empty")
		}
		all[name] = object
	}
	return all
}

func parse(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err)
	}
	return object
}
