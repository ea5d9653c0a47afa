package mlflow_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
)

// vector is an object of testdata/admission.yaml.
type vector struct {
	Rule, Tag, Title, Kind, Name string
	Refused                      string
	Spec                         map[string]any
}

// object returns the vector as a user would send it, without fields dropped or defaulted by Go types.
func (v vector) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": v.Spec}}
	u.SetName("mlflow")
	if v.Name != "" {
		u.SetName(v.Name)
	}
	u.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
	if v.Kind == "MLflowConfig" {
		u.SetGroupVersionKind(mlflowconfigv1.GroupVersion.WithKind(v.Kind))
		u.SetNamespace(namespace)
	}
	return u
}

var _ = Describe("The schema", func() {
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		return data
	}

	// The file is read before any spec runs, so a spec reports the error.
	vectors, err := vectorsOf("testdata/admission.yaml")
	It("has a rejected test vector for each listed rule", func() {
		Expect(err).NotTo(HaveOccurred())
		for _, rule := range []string{
			"R0a", "R0b", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R18",
			"R19", "R20", "R21", "R22", "R23", "R24", "R25", "map", "artifacts", "archive", "bounds", "enum", "name", "path", "pattern", "pods",
			"retention", "secret", "tls", "D4", "D7", "D23", "D24", "D25", "D27", "D35", "D36",
		} {
			Expect(slices.ContainsFunc(vectors, func(v vector) bool { return v.Rule == rule && v.Refused != "" })).To(BeTrue(), rule)
		}
	})
	for _, v := range vectors {
		result := "accepts "
		if v.Refused != "" {
			result = "rejects "
		}
		It("["+v.Tag+"] "+result+v.Title+" ("+v.Rule+")", func(ctx SpecContext) {
			err := env.Admin.Create(ctx, v.object(), client.DryRunAll)
			if v.Refused == "" {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring(v.Refused)))
		})
	}

	It("[mlflow-30] rejects a change of the Secret in an MLflowConfig", func(ctx SpecContext) {
		config := &mlflowconfigv1.MLflowConfig{Spec: mlflowconfigv1.MLflowConfigSpec{ArtifactRootSecret: "mlflow-artifact-connection"}}
		config.Namespace, config.Name = env.Namespace(ctx, "workspace"), "mlflow"
		Expect(env.Admin.Create(ctx, config)).To(Succeed())
		other := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"artifactRootSecret": "other"}}`))
		Expect(env.Admin.Patch(ctx, config, other)).To(MatchError(ContainSubstring("artifactRootSecret must be 'mlflow-artifact-connection'")))
	})

	It("accepts every sample", func(ctx SpecContext) {
		files, err := filepath.Glob("../../../config/samples/mlflow*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(8))
		for _, file := range files {
			sample := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal(read(file), sample)).To(Succeed(), file)
			if sample.GetKind() == "MLflowConfig" {
				sample.SetNamespace(namespace)
			}

			Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, sample, client.DryRunAll)).To(Succeed(), file)
		}
	})

	It("[D4] [D7] [D24] [D25] [D27] accepts updates of objects that were stored before the newer rules", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(read("../../../config/crd/bases/mlflow.opendatahub.io_mlflows.yaml"), crd)).To(Succeed())
		legacyCRD := createLegacyCRD(ctx, crd)
		stored := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"backendStoreUri": "postgresql://db/x", "serveArtifacts": true,
			"podLabels": map[string]any{"app": "own"},
			"env":       []any{map[string]any{"name": "MLFLOW_BACKEND_STORE_URI", "value": "x"}},
			"replicas":  2, "registryStoreUri": "sqlite+pysqlite:////x.db",

			"garbageCollection": map[string]any{"schedule": "60 * * * *", "olderThan": "0d"},
			"traceArchival":     map[string]any{"retention": "0d"},
		}}}
		stored.SetGroupVersionKind(schema.GroupVersionKind{Group: legacyCRD.Spec.Group, Version: "v1", Kind: "MLflow"})
		stored.SetName("mlflow")
		// The API server serves an established CRD with a delay.
		Eventually(func() error { return env.Admin.Create(ctx, stored) }).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())

		// The API server applies the rules with a delay. A second object shows when they apply.
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(legacyCRD), legacyCRD)).To(Succeed())
		legacyCRD.Spec.Versions = crd.Spec.Versions
		Expect(env.Admin.Update(ctx, legacyCRD)).To(Succeed())
		second := &unstructured.Unstructured{Object: map[string]any{"spec": stored.Object["spec"]}}
		second.SetGroupVersionKind(stored.GroupVersionKind())
		second.SetName("mlflow-b")
		Eventually(func() error { return env.Admin.Create(ctx, second.DeepCopy(), client.DryRunAll) }).WithContext(ctx).WithTimeout(specTimeout).
			Should(MatchError(And(ContainSubstring("podLabels must not set"), ContainSubstring("MLFLOW_BACKEND_STORE_URI is not allowed"),
				ContainSubstring("storage must be configured when serveArtifacts is true"), ContainSubstring("the minute in schedule"),
				ContainSubstring("olderThan must be longer"), ContainSubstring("replicas must be 1 unless"), ContainSubstring("retention must be longer"))))

		env.Patch(ctx, stored, map[string]any{"spec": map[string]any{"replicas": 3, "env": nil}})
		env.Patch(ctx, stored, map[string]any{"spec": map[string]any{"garbageCollection": map[string]any{"resources": map[string]any{}}}})
		env.Patch(ctx, stored, map[string]any{"spec": map[string]any{"replicas": 1}})
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))
		Expect(env.Admin.Patch(ctx, stored.DeepCopy(), patch)).To(MatchError(ContainSubstring("replicas must be 1 unless")))
		patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"garbageCollection":{"schedule":"61 * * * *"}}}`))
		Expect(env.Admin.Patch(ctx, stored.DeepCopy(), patch)).To(MatchError(ContainSubstring("the minute in schedule")))
		patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"podLabels":{"component":"own"}}}`))
		Expect(env.Admin.Patch(ctx, stored.DeepCopy(), patch)).To(MatchError(ContainSubstring("podLabels must not set")))
		env.Patch(ctx, stored, map[string]any{"spec": map[string]any{"podLabels": nil, "artifactsDestination": "s3://b"}})
		patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"artifactsDestination":null}}`))
		Expect(env.Admin.Patch(ctx, stored.DeepCopy(), patch)).To(MatchError(ContainSubstring("add spec.storage")))
	}, NodeTimeout(specTimeout))
})

func vectorsOf(path string) ([]vector, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var vectors []vector
	return vectors, yaml.UnmarshalStrict(data, &vectors)
}

// createLegacyCRD creates the CRD without its rules, in another group, which the manager does not watch.
func createLegacyCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	data, err := json.Marshal(crd.Spec)
	Expect(err).NotTo(HaveOccurred())
	var tree any
	Expect(json.Unmarshal(data, &tree)).To(Succeed())
	withoutRules(tree)
	data, err = json.Marshal(tree)
	Expect(err).NotTo(HaveOccurred())
	legacy := &apiextensionsv1.CustomResourceDefinition{}
	Expect(json.Unmarshal(data, &legacy.Spec)).To(Succeed())
	legacy.Spec.Group = "older.test.opendatahub.io"
	legacy.Name = legacy.Spec.Names.Plural + "." + legacy.Spec.Group
	create(ctx, legacy)
	return legacy
}

func withoutRules(tree any) {
	switch node := tree.(type) {
	case map[string]any:
		delete(node, "x-kubernetes-validations")
		for _, child := range node {
			withoutRules(child)
		}
	case []any:
		for _, child := range node {
			withoutRules(child)
		}
	}
}
