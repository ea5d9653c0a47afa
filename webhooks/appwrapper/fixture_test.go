package appwrapper

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

const testNamespace = "team"

// Templates of components.
const (
	pod                = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: a}]}}"
	service            = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"
	deployment         = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {spec: {containers: [{name: main, image: a}]}}}}"
	sameNamespacePod   = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {containers: [{name: main, image: a}]}}"
	otherNamespacePod  = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: other}, spec: {containers: [{name: main, image: a}]}}"
	nestedTemplate     = "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: x}, spec: {components: []}}"
	roleBinding        = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: cluster-admin}}"
	clusterRoleBinding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}}"
	namespaceTemplate  = "{apiVersion: v1, kind: Namespace, metadata: {name: x}}"
	unservedTemplate   = "{apiVersion: example.com/v1, kind: Unserved, metadata: {name: x}}"
	jobSet             = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [" +
		"{name: a, replicas: 1, template: {spec: {parallelism: 1, completions: 1, template: {spec: {containers: [{name: main, image: a}]}}}}}," +
		"{name: b, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, image: a}]}}}}}]}}"
	rayCluster = "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {" +
		"headGroupSpec: {template: {spec: {containers: [{name: head, image: a}]}}}," +
		"workerGroupSpecs: [{replicas: 7, template: {spec: {containers: [{name: worker, image: a}]}}}]}}"
	rayJob = "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {rayClusterSpec: {" +
		"headGroupSpec: {template: {spec: {containers: [{name: head, image: a}]}}}," +
		"workerGroupSpecs: [{replicas: 2, template: {spec: {containers: [{name: worker, image: a}]}}}]}}}"
	pyTorch = "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: t}, spec: {pytorchReplicaSpecs: {" +
		"Master: {template: {spec: {containers: [{name: pytorch, image: a}]}}}," +
		"Worker: {replicas: 4, template: {spec: {containers: [{name: pytorch, image: a}]}}}}}}"
)

func job(parallelism, completions string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: " + parallelism + ", completions: " + completions +
		", template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}}"
}

// component returns an entry of spec.components with declared pod sets.
func component(template string, sets ...string) string {
	text := "- template: " + template + "\n"
	if len(sets) > 0 {
		text += "  podSets: [" + strings.Join(sets, ", ") + "]\n"
	}
	return text
}

// newAppWrapper returns an AppWrapper with the given components.
func newAppWrapper(t *testing.T, components ...string) *v1beta2.AppWrapper {
	t.Helper()
	wrapper := &v1beta2.AppWrapper{}
	wrapper.APIVersion, wrapper.Kind = v1beta2.GroupVersion.String(), v1beta2.Kind
	wrapper.Namespace, wrapper.Name = testNamespace, "aw"
	wrapper.Spec.Components = []v1beta2.AppWrapperComponent{}
	if err := yaml.Unmarshal([]byte(strings.Join(components, "")), &wrapper.Spec.Components); err != nil {
		t.Fatal(err)
	}
	return wrapper
}

func toJSON(t *testing.T, object any) []byte {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// cluster is a fake REST mapper and access reviewer. It records reviews.
type cluster struct {
	mapper meta.RESTMapper
	// forbidden are resources that the user may not create.
	forbidden []string
	// err is the error of access reviews.
	err     error
	reviews []authorizationv1.ResourceAttributes
	users   []authenticationv1.UserInfo
}

func newCluster(forbidden ...string) *cluster {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(group, version, kind string, scope meta.RESTScope) {
		mapper.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, scope)
	}
	for _, kind := range []string{"Pod", "Service", "ConfigMap", "Secret"} {
		add("", "v1", kind, meta.RESTScopeNamespace)
	}
	add("apps", "v1", "Deployment", meta.RESTScopeNamespace)
	add("batch", "v1", "Job", meta.RESTScopeNamespace)
	add("jobset.x-k8s.io", "v1alpha2", "JobSet", meta.RESTScopeNamespace)
	add("ray.io", "v1", "RayCluster", meta.RESTScopeNamespace)
	add("ray.io", "v1", "RayJob", meta.RESTScopeNamespace)
	add("kubeflow.org", "v1", "PyTorchJob", meta.RESTScopeNamespace)
	add("trainer.kubeflow.org", "v1alpha1", "TrainJob", meta.RESTScopeNamespace)
	add("route.openshift.io", "v1", "Route", meta.RESTScopeNamespace)
	add("rbac.authorization.k8s.io", "v1", "Role", meta.RESTScopeNamespace)
	add("rbac.authorization.k8s.io", "v1", "RoleBinding", meta.RESTScopeNamespace)
	add("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", meta.RESTScopeRoot)
	add("authorization.openshift.io", "v1", "RoleBinding", meta.RESTScopeNamespace)
	add("", "v1", "Namespace", meta.RESTScopeRoot)
	add("workload.codeflare.dev", "v1beta2", "AppWrapper", meta.RESTScopeNamespace)
	return &cluster{mapper: mapper, forbidden: forbidden}
}

func (c *cluster) review(_ context.Context, user authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
	c.reviews, c.users = append(c.reviews, permission), append(c.users, user)
	name := permission.Resource
	if permission.Subresource != "" {
		name += "/" + permission.Subresource
	}
	return !slices.Contains(c.forbidden, name), c.err
}

var alice = authenticationv1.UserInfo{
	Username: "alice@example.org", UID: "u:1", Groups: []string{"system:authenticated", "team"},
	Extra: map[string]authenticationv1.ExtraValue{"scopes": {"user:full"}},
}

// validate returns the errors of a creation by alice.
func (c *cluster) validate(t *testing.T, components ...string) field.ErrorList {
	t.Helper()
	validator := &creationValidator{wrapper: newAppWrapper(t, components...), namespace: testNamespace, user: alice, mapper: c.mapper, access: pkgadmission.LimitReviews(c.review), podSetLimit: fixedLimit(maxPodSets)}
	return validator.validate(t.Context())
}

func errorStrings(errs field.ErrorList) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func fixedSettings(s Settings) settingsFunc {
	return func(context.Context) (Settings, error) { return s, nil }
}

func failingSettings(context.Context) (Settings, error) {
	return Settings{}, errors.New("resetPause is invalid")
}

func newRequest(t *testing.T, operation admissionv1.Operation, object, old any) admission.Request {
	t.Helper()
	request := admission.Request{}
	request.UID, request.Operation, request.Namespace, request.UserInfo = "r", operation, testNamespace, alice
	if object != nil {
		request.Object = runtime.RawExtension{Raw: toJSON(t, object)}
	}
	if old != nil {
		request.OldObject = runtime.RawExtension{Raw: toJSON(t, old)}
	}
	return request
}
