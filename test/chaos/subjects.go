package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// subject is a custom resource of the campaign, with its dependencies.
type subject struct {
	name string
	// files are samples in config/samples. The last file is the custom resource.
	files []string
	// labels of its namespace.
	labels map[string]string
	// needs are manifests of its dependencies, which a user creates.
	needs []string
	// edit changes the sample.
	edit func(*unstructured.Unstructured)
	// ready is a condition, or a status field as field=value, that is set when the custom resource is ready.
	ready string
	// requiredChild is the manifest of a child that has to be Available as well.
	requiredChild string
	// change is a merge patch of the custom resource. readyAfterChange, if set, replaces ready after the patch.
	change, readyAfterChange string
	// fixedNamespace is the namespace of a singleton.
	fixedNamespace string
	// paths are substrings of the paths of its objects of cluster scope or in operatorNamespace; {} is replaced by its namespace.
	paths []string
}

// withoutQueue removes the queue of an AppWrapper, so the AppWrapper starts immediately, and its annotations, so its children are not
// deleted after it has succeeded.
func withoutQueue(o *unstructured.Unstructured) {
	o.SetLabels(nil)
	o.SetAnnotations(nil)
}

// meshRuntime is a runtime whose model servers the fake routing layer simulates.
const meshRuntime = `{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: onnx}, spec: {multiModel: true,
  grpcEndpoint: "port:8085", grpcDataEndpoint: "port:8001", replicas: 1, supportedModelFormats: [{name: sklearn, version: "0", autoSelect: true}],
  containers: [{name: server, image: "registry.example.com/server:1"}]}}`

const meshStorage = `{apiVersion: v1, kind: Secret, metadata: {name: storage-config}, stringData: {localMinIO: '{"type": "s3",
  "access_key_id": "none", "secret_access_key": "none", "endpoint_url": "http://minio.invalid:9000", "default_bucket": "models"}'}}`

const (
	credentials = `{apiVersion: v1, kind: Secret, metadata: {name: model-registry-db}, stringData: {database-password: none}}`
	artifacts   = `{apiVersion: v1, kind: Secret, metadata: {name: mlflow-artifact-connection}, stringData: {AWS_ACCESS_KEY_ID: a,
  AWS_SECRET_ACCESS_KEY: b, AWS_S3_BUCKET: c, AWS_S3_ENDPOINT: "http://minio.invalid:9000"}}`
)

var subjects = []subject{
	{name: "mlflow", files: []string{"mlflow.yaml"}, ready: "Available", fixedNamespace: operatorNamespace, paths: []string{"/mlflow/", "/mlflow-"},
		change: `{"spec":{"resources":{"requests":{"cpu":"300m"}}}}`},
	{name: "mlflowconfig", files: []string{"mlflowconfig.yaml"}, ready: "ReferencesReady", needs: []string{artifacts},
		change: `{"spec":{"artifactRootPath":"elsewhere"}}`},
	{name: "registry", files: []string{"modelregistry_generated.yaml"}, ready: "Available", paths: []string{"/{}"},
		change: `{"spec":{"rest":{"resources":{"requests":{"cpu":"150m"}}}}}`},
	{name: "registryproxy", files: []string{"modelregistry_proxy.yaml"}, ready: "Available", paths: []string{"/{}"},
		change: `{"spec":{"rest":{"resources":{"requests":{"cpu":"150m"}}}}}`},
	{name: "registrydb", files: []string{"modelregistry_postgres.yaml"}, ready: "Available", paths: []string{"/{}"}, needs: []string{credentials},
		change: `{"spec":{"postgres":{"host":"other-db"}}}`},
	{name: "catalog", files: []string{"aihub_catalog.yaml"}, ready: "Available", fixedNamespace: "chaos-catalog", paths: []string{"/model-catalog"},
		change: `{"spec":{"resources":{"catalog":{"requests":{"cpu":"150m"}}}}}`},
	{name: "appwrapper", files: []string{"appwrapper_deployment.yaml"}, edit: withoutQueue, ready: "phase=Running",
		change: `{"spec":{"suspend":true}}`, readyAfterChange: "phase=Suspended"},
	{name: "appwrapperjob", files: []string{"appwrapper_job.yaml"}, edit: withoutQueue, ready: "phase=Succeeded"},
	{name: "raycluster", files: []string{"raycluster.yaml"}, ready: "state=ready",
		change: `{"spec":{"headGroupSpec":{"rayStartParams":{"num-cpus":"1"}}}}`},
	{name: "predictor", files: []string{"modelmesh_predictor.yaml"}, labels: map[string]string{"modelmesh-enabled": "true"},
		needs: []string{meshStorage, meshRuntime}, ready: "activeModelState=Loaded", change: `{"spec":{"storage":{"path":"sklearn/other.joblib"}}}`},
	{name: "inference", files: []string{"modelmesh_inferenceservice.yaml"}, labels: map[string]string{"modelmesh-enabled": "true"},
		needs: []string{meshStorage, meshRuntime}, ready: "Ready", change: `{"spec":{"predictor":{"model":{"storage":{"path":"sklearn/other.joblib"}}}}}`},
}

// hubNamespace is the namespace of the Catalog of the AIHub.
const hubNamespace = "chaos-hub"

// platformSubjects are the platform resources, which the manager reconciles when the component platform is enabled. They have their own
// scenarios, because an AIHub restricts registries to one namespace.
var platformSubjects = []subject{
	{name: "mlflowoperator", files: []string{"platform_mlflowoperator.yaml"}, ready: "Ready", fixedNamespace: operatorNamespace, paths: []string{"/mlflowoperators/"},
		change: `{"spec":{"sectionTitle":"Elsewhere"}}`},
	{name: "aihub", files: []string{"platform_aihub.yaml"}, ready: "Ready", fixedNamespace: hubNamespace, labels: map[string]string{platform.LabelRegistries: "true"},
		paths: []string{"/aihubs/", "/model-catalog"},
		edit: func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, hubNamespace, "spec", "instancesNamespace") // spec is a map
		},
		requiredChild: `{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {namespace: ` + hubNamespace + `, name: catalog}}`,
		change:        `{"spec":{"gateway":{"domain":"elsewhere.example.com"}}}`},
}

// subjectNamed returns a subject by name.
func subjectNamed(name string) (subject, error) {
	all := slices.Concat(subjects, platformSubjects)
	if i := slices.IndexFunc(all, func(s subject) bool { return s.name == name }); i >= 0 {
		return all[i], nil
	}
	return subject{}, fmt.Errorf("%w: %s", errUnknown, name)
}

// fixture is a subject in its own namespace.
type fixture struct {
	subject

	namespace string
	objects   []*unstructured.Unstructured
	// crash is the number of the write in each phase after which the manager is killed; 0 for none.
	crash int
}

// fixture reads the samples of a subject for a namespace; a singleton uses its fixed namespace.
func (s subject) fixture(namespace string) (*fixture, error) {
	if s.fixedNamespace != "" {
		namespace = s.fixedNamespace
	}
	f := &fixture{subject: s, namespace: namespace}
	for _, text := range s.needs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return nil, fmt.Errorf("decoding a dependency of %s: %w", s.name, err)
		}
		o.SetNamespace(namespace)
		f.objects = append(f.objects, o)
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	for _, file := range s.files {
		read, err := framework.ReadObjects(filepath.Join(root, "config", "samples", file))
		if err != nil {
			return nil, err
		}
		for _, o := range read {
			switch o.GetKind() {
			case "MLflow", "MLflowOperator", "AIHub": // cluster-scoped
			case "ModelRegistry": // its name is part of the names of cluster-scoped objects
				o.SetNamespace(namespace)
				o.SetName(namespace)
			default:
				o.SetNamespace(namespace)
			}
			if s.edit != nil {
				s.edit(o)
			}
			f.objects = append(f.objects, o)
		}
	}
	return f, nil
}

// resource returns the custom resource of the fixture.
func (f *fixture) resource() *unstructured.Unstructured { return f.objects[len(f.objects)-1] }

// owns reports whether a request is for an object of the fixture.
func (f *fixture) owns(q request) bool {
	if q.namespace != "" && (q.namespace != f.namespace || f.namespace != operatorNamespace) {
		return q.namespace == f.namespace
	}
	for _, part := range f.paths {
		if strings.Contains(q.path+"/", strings.ReplaceAll(part, "{}", f.namespace)) {
			return true
		}
	}
	return false
}

// createAll creates the namespace and all objects of the fixture, with retries until the webhooks respond.
func (f *fixture) createAll(ctx context.Context, c *testCluster) error {
	if err := c.createNamespace(ctx, f); err != nil {
		return err
	}
	for _, o := range f.objects {
		if err := c.create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// create creates an object, with retries until its webhooks and namespace are ready.
func (c *testCluster) create(ctx context.Context, o *unstructured.Unstructured) error {
	err := c.waitUntil(ctx, waitTimeout, func() (string, error) {
		return "", client.IgnoreAlreadyExists(c.admin.Create(ctx, o.DeepCopy()))
	})
	if err != nil {
		return fmt.Errorf("creating %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

func (f *fixture) patch(ctx context.Context, c *testCluster, body string) error {
	if err := c.admin.Patch(ctx, f.resource().DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		return fmt.Errorf("changing %s: %w", f.name, err)
	}
	return nil
}

func (f *fixture) remove(ctx context.Context, c *testCluster) error {
	if err := c.admin.Delete(ctx, f.resource().DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", f.name, err)
	}
	return nil
}

// unreadyReason returns why the custom resource is not ready, "" if it is.
func (f *fixture) unreadyReason(ctx context.Context, c *testCluster, ready string) (string, error) {
	live := f.resource().DeepCopy()
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return f.name + " cannot be read", err
	}
	if reason := notReadyReason(live, ready); reason != "" {
		return f.name + ": " + reason, nil
	}
	if f.requiredChild == "" {
		return "", nil
	}
	child := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(f.requiredChild), &child.Object); err != nil {
		return "", fmt.Errorf("decoding a child of %s: %w", f.name, err)
	}
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return f.name + " has no " + child.GetKind(), client.IgnoreNotFound(err)
	}
	if reason := notReadyReason(child, "Available"); reason != "" {
		return fmt.Sprintf("%s of %s: %s", child.GetKind(), f.name, reason), nil
	}
	return "", nil
}

// existsReason returns the reason why the custom resource still exists, "" if it does not.
func (f *fixture) existsReason(ctx context.Context, c *testCluster) (string, error) {
	live := f.resource().DeepCopy()
	err := c.admin.Get(ctx, client.ObjectKeyFromObject(live), live)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return fmt.Sprintf("%s still exists, with finalizers %v", f.name, live.GetFinalizers()), err
}

var errNoReadiness = errors.New("the subject does not define when it is ready")

// notReadyReason returns why a live object is not ready, "" if it is.
func notReadyReason(live *unstructured.Unstructured, ready string) string {
	if live.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	if ready == "" {
		return errNoReadiness.Error()
	}
	if field, want, is := strings.Cut(ready, "="); is {
		if value, _, _ := unstructured.NestedString(live.Object, "status", field); value != want {
			return fmt.Sprintf("%s is %q, not %q", field, value, want)
		}
		return ""
	}
	var decoded struct {
		Status struct {
			ObservedGeneration int64
			Conditions         []metav1.Condition
		}
	}
	text, err := json.Marshal(live.Object)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		return err.Error()
	}
	for _, c := range decoded.Status.Conditions {
		if c.Type != ready {
			continue
		}
		stale := c.ObservedGeneration != 0 && c.ObservedGeneration < live.GetGeneration() ||
			decoded.Status.ObservedGeneration != 0 && decoded.Status.ObservedGeneration < live.GetGeneration()
		if c.Status == metav1.ConditionTrue && !stale {
			return ""
		}
		return fmt.Sprintf("%s is %s, %s: %s", ready, c.Status, c.Reason, c.Message)
	}
	return "condition " + ready + " is missing"
}
