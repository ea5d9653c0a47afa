package appwrapper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// [appwrapper-34] [appwrapper-35] Components with and without declared pod sets are accepted.
func TestCreateAcceptsValidComponents(t *testing.T) {
	for name, components := range map[string][]string{
		"Pod, Deployment, Pod with the namespace of the AppWrapper, RayCluster, JobSet": {
			component(pod), component(deployment), component(sameNamespacePod, "{path: template}"), component(rayCluster),
			component(jobSet, "{path: 'template.spec.replicatedJobs[0].template.spec.template'}",
				"{path: 'template.spec.replicatedJobs[1].template.spec.template', replicas: 4}"),
		},
		"Jobs":                   {component(job("2", "4")), component(job("8", "4"))},
		"PyTorchJob":             {component(pyTorch)},
		"RayCluster":             {component(rayCluster)},
		"RayJob":                 {component(rayJob)},
		"Service and Deployment": {component(service), component(deployment)},
		"eight pods":             {strings.Repeat(component(pod), 8)},
		"zero replicas":          {component(strings.Replace(deployment, "replicas: 2", "replicas: 0", 1), "{path: template.spec.template, replicas: 0}")},
		"declared replicas":      {component(deployment, "{path: template.spec.template, replicas: 2}")},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := newCluster().validate(t, components...); len(errs) > 0 {
				t.Errorf("got errors %s, want none", errs.ToAggregate())
			}
		})
	}
}

// [appwrapper-28] [appwrapper-29] Invalid components are rejected. Each error has the field and the error type.
func TestInvalidComponentsAreRejected(t *testing.T) {
	const first = "spec.components[0]."
	set := func(path string) string { return component(jobSet, "{path: '"+path+"'}") }
	for name, tc := range map[string]struct {
		components []string
		want       []string // prefixes of errors
	}{
		"no components":  {nil, []string{"spec.components: Invalid value: 0: components contains no podspecs"}},
		"only a Service": {[]string{component(service)}, []string{"spec.components: Invalid value: 0: components contains no podspecs"}},
		"nine pods":      {[]string{strings.Repeat(component(pod), 9)}, []string{"spec.components: Invalid value: 9: components contains 9 podspecs; at most 8 are allowed: remove some, or use several AppWrappers"}},
		"missing path":   {[]string{component(pod, "{replicas: 1}")}, []string{first + "podSets[0].path: Required value: podspec must specify path"}},
		"empty path":     {[]string{component(pod, "{path: ''}")}, []string{first + "podSets[0].path: Required value: podspec must specify path"}},
		"path to metadata": {[]string{component(pod, "{path: template.metadata}")}, []string{
			first + `podSets[0].path: Invalid value: "template.metadata": path does not refer to a v1.PodSpecTemplate: `}},
		"map access on an array":  {[]string{set("template.spec.replicatedJobs.template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"array itself":            {[]string{set("template.spec.replicatedJobs")}, []string{first + "podSets[0].path: Invalid value"}},
		"array access on a map":   {[]string{set("template.spec.replicatedJobs[0].template[0]")}, []string{first + "podSets[0].path: Invalid value"}},
		"index 10":                {[]string{set("template.spec.replicatedJobs[10].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"index -1":                {[]string{set("template.spec.replicatedJobs[-1].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"index a10":               {[]string{set("template.spec.replicatedJobs[a10].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"missing closing bracket": {[]string{set("template.spec.replicatedJobs[1")}, []string{first + "podSets[0].path: Invalid value"}},
		"two closing brackets":    {[]string{set("template.spec.replicatedJobs[1]].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},

		"another namespace": {[]string{component(otherNamespacePod)}, []string{first + "template.metadata.namespace: Forbidden: AppWrappers cannot create objects in other namespaces"}},
		"nested AppWrapper": {[]string{component(nestedTemplate), component(pod)}, []string{first + "template: Forbidden: Nested AppWrappers are forbidden"}},
		"nested AppWrapper of another version": {[]string{component(strings.Replace(nestedTemplate, "v1beta2", "v1beta1", 1)), component(pod)}, []string{
			first + "template: Forbidden: Nested AppWrappers are forbidden"}},

		"path declared twice": {[]string{component(unservedTemplate, "{path: template}"), component(pod, "{path: template}", "{path: template}")}, []string{
			first + "template: Invalid value", first + "podSets[0].path", "spec.components[1].podSets: Invalid value: 2: "}},
		"other replicas than inferred": {[]string{component(deployment, "{path: template.spec.template, replicas: 3}")}, []string{
			first + `podSets: Invalid value: 1: replica count 3 differs from inferred count 2 for PodSet at path position 'template.spec.template': correct replicas`}},
		"invalid replicas in the template": {[]string{component("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: x, template: {spec: {}}}}"), component(pod)}, []string{
			first + `template: Invalid value: "Deployment.apps": error inferring PodSets: `}},
		"negative replicas": {[]string{component(pod), component(strings.Replace(pod, "kind: Pod", "kind: ConfigMap", 1), "{path: template, replicas: -1}")}, []string{
			"spec.components[1].podSets[0].replicas: Invalid value: -1: "}},

		"no kind":                   {[]string{component("{apiVersion: v1}"), component(pod)}, []string{first + `template: Invalid value: "{\"apiVersion\":\"v1\"}": failed to decode as JSON`}},
		"list instead of an object": {[]string{component("[]"), component(pod)}, []string{first + "template: Invalid value: \"[]\": failed to decode as JSON"}},
		"invalid apiVersion":        {[]string{component("{apiVersion: a/b/c, kind: Pod}"), component(pod)}, []string{first + "template: Invalid value"}},
		"invalid metadata":          {[]string{component("{apiVersion: v1, kind: Pod, metadata: text}"), component(pod)}, []string{first + "template: Invalid value"}},
		"long invalid template":     {[]string{component("{apiVersion: v1, text: " + strings.Repeat("x", 100) + "}"), component(pod)}, []string{first + `template: Invalid value: "{\"apiVersion\":\"v1\",\"text\":\"`}},

		"cluster-scoped kind": {[]string{component(namespaceTemplate), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create cluster-scoped objects such as Namespace"}},
		"RoleBinding": {[]string{component(roleBinding), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create RoleBinding.rbac.authorization.k8s.io: objects that grant permissions"}},
		"ClusterRoleBinding": {[]string{component(clusterRoleBinding), component(pod)}, []string{first + "template: Forbidden: AppWrappers cannot create ClusterRoleBinding"}},
		"RoleBinding of OpenShift": {[]string{component(strings.Replace(roleBinding, "rbac.authorization.k8s.io", "authorization.openshift.io", 1)), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create RoleBinding.authorization.openshift.io"}},
		"kind that is not served": {[]string{component(unservedTemplate, "{path: template}"), component(pod)}, []string{
			first + `template: Invalid value: "Unserved": the cluster serves no Unserved.example.com in version v1: install`,
			first + "podSets[0].path: Invalid value"}},

		"several invalid components": {[]string{component(otherNamespacePod, "{path: ''}"), component(roleBinding)}, []string{
			first + "template.metadata.namespace: Forbidden", first + "podSets[0].path: Required value", first + "podSets: Invalid value", "spec.components[1].template: Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := errorStrings(newCluster().validate(t, tc.components...))
			for _, want := range tc.want {
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("want an error with prefix %q, got:\n%s", want, strings.Join(got, "\n"))
				}
			}
			if len(got) < len(tc.want) {
				t.Errorf("got %d errors, want at least %d", len(got), len(tc.want))
			}
		})
	}
}

// [D34] An invalid template is one error, and the other components are validated too.
func TestUndecodableTemplateIsOneError(t *testing.T) {
	got := errorStrings(newCluster("pods").validate(t, component("{}", "{path: template}"), component(pod)))
	if len(got) != 2 || !strings.Contains(got[0], "failed to decode") || !strings.Contains(got[1], "is not authorized to create pods") {
		t.Errorf("got errors %q, want one for each component", got)
	}
}

// Components after too many errors are not checked.
func TestCreateLimitsErrors(t *testing.T) {
	got := errorStrings(newCluster().validate(t, strings.Repeat(component(unservedTemplate), 1000)))
	if len(got) != pkgadmission.MaxErrors+1 || !strings.Contains(got[pkgadmission.MaxErrors], "was not checked") {
		t.Errorf("got %d errors, want %d and a note; errors %q", len(got), pkgadmission.MaxErrors, got)
	}
}

// [D12] A name is rejected if it is too long for a pod set, or has dots and the AppWrapper has a queue.
func TestInvalidNamesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		name, queue string
		podSets     int
		want        string
	}{
		"short name":                     {name: "aw"},
		"61 characters":                  {name: strings.Repeat("a", 61)},
		"61 characters, eight pod sets":  {name: strings.Repeat("a", 61), podSets: 8},
		"62 characters":                  {name: strings.Repeat("a", 62), want: "must be at most 61 characters"},
		"64 characters":                  {name: strings.Repeat("a", 64), want: "this name has 64"},
		"dots without a queue":           {name: "a.b"},
		"dots with a queue":              {name: "a.b", queue: "q", want: "must have no dots"},
		"61 characters, eleven pod sets": {name: strings.Repeat("a", 61), podSets: 11, want: "at most 60 characters"},
		"negative number of pod sets":    {name: "aw", podSets: -1},
	} {
		wrapper := newAppWrapper(t, component(pod))
		wrapper.Name, wrapper.Labels = tc.name, map[string]string{"kueue.x-k8s.io/queue-name": tc.queue}
		errs := validateName(wrapper, tc.podSets)
		if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) || errs[0].Field != "metadata.name") {
			t.Errorf("%s: got %v, want %q", name, errs, tc.want)
		}
	}
}

// [appwrapper-33] The access review contains the user, verb, API group, version, resource and namespace; components of the same kind share
// one review.
func TestAccessReview(t *testing.T) {
	c := newCluster("deployments")
	got := errorStrings(c.validate(t, component(pod), component(deployment), component(pod), component(deployment)))
	want := []string{
		"spec.components[1].template: Forbidden: User alice@example.org is not authorized to create deployments.apps in team: grant the user this permission",
		"spec.components[3].template: Forbidden: User alice@example.org is not authorized to create deployments.apps in team: grant the user this permission",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantReviews := []authorizationv1.ResourceAttributes{
		{Namespace: testNamespace, Verb: "create", Version: "v1", Resource: "pods"},
		{Namespace: testNamespace, Verb: "create", Group: "apps", Version: "v1", Resource: "deployments"},
	}
	if diff := cmp.Diff(wantReviews, c.reviews); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]authenticationv1.UserInfo{alice, alice}, c.users); diff != "" {
		t.Error(diff)
	}
}

func TestForbiddenKindsCauseNoAccessReview(t *testing.T) {
	c := newCluster()
	c.validate(t, component(roleBinding), component(namespaceTemplate), component(nestedTemplate), component(unservedTemplate))
	if len(c.reviews) > 0 {
		t.Errorf("got access reviews %v, want none", c.reviews)
	}
}

// [D6] A Route with a host, subdomain or certificate requires a separate permission, which the operator may have and the user may lack.
func TestRoutesWithCustomHostRequirePermission(t *testing.T) {
	route := func(spec string) string {
		return "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: r}, spec: {" + spec + "}}"
	}
	for spec, wantErrors := range map[string]int{
		"":                                      0,
		"host: ''":                              0,
		"host: a.example.org":                   1,
		"subdomain: a":                          1,
		"tls: {termination: edge}":              0,
		"tls: {certificate: x}":                 1,
		"tls: text":                             1,
		"tls: {externalCertificate: {name: a}}": 1,
	} {
		errs := newCluster("routes/custom-host").validate(t, component(route(spec)), component(pod))
		if len(errs) != wantErrors || wantErrors > 0 && !strings.Contains(errs[0].Error(), "is not authorized to create routes/custom-host.route.openshift.io in team") {
			t.Errorf("%s: got errors %v, want %d", spec, errs, wantErrors)
		}
	}
}

// Errors of the REST mapper and of access reviews, and a request without a user, are internal errors.
func TestCreateFailsOnErrorsOfCluster(t *testing.T) {
	c := newCluster()
	c.err = errors.New("the API server is unavailable")
	if got := errorStrings(c.validate(t, component(pod))); len(got) != 1 ||
		!strings.HasPrefix(got[0], "spec.components[0].template: Internal error: checking whether alice@example.org may create pods") {
		t.Errorf("got errors %q, want an internal error of the access review", got)
	}
	anonymous := &creationValidator{wrapper: newAppWrapper(t, component(pod)), namespace: testNamespace, mapper: c.mapper, access: c.review}
	if got := errorStrings(anonymous.validate(t.Context())); len(got) != 1 || !strings.HasPrefix(got[0], "spec.components: Internal error: the request names no user") {
		t.Errorf("got errors %q, want an internal error about the user", got)
	}
	undiscovered := &creationValidator{wrapper: newAppWrapper(t, component(pod)), namespace: testNamespace, user: alice, mapper: failingMapper{}, access: c.review}
	if got := errorStrings(undiscovered.validate(t.Context())); len(got) != 1 || !strings.HasPrefix(got[0], "spec.components[0].template: Internal error: finding the resource of Pod") {
		t.Errorf("got errors %q, want an internal error of the mapper", got)
	}
}

type failingMapper struct{}

func (failingMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("discovery is unavailable")
}

// Without access reviews, kinds are still checked.
func TestCreateWithoutAccessReview(t *testing.T) {
	validator := &creationValidator{wrapper: newAppWrapper(t, component(pod), component(roleBinding)), namespace: testNamespace, mapper: newCluster().mapper}
	if got := errorStrings(validator.validate(context.Background())); len(got) != 1 || !strings.Contains(got[0], "objects that grant permissions") {
		t.Errorf("got errors %q, want one about the RoleBinding", got)
	}
}
