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

// [appwrapper-34] [appwrapper-35] Accepted AppWrappers, with and without declared pod sets.
func TestCreateAcceptsValidComponents(t *testing.T) {
	for name, components := range map[string][]string{
		"Pod, Deployment, Pod with the namespace of the AppWrapper, RayCluster, JobSet": {
			component(pod), component(deployment), component(homePod, "{path: template}"), component(rayCluster),
			component(jobSet, "{path: 'template.spec.replicatedJobs[0].template.spec.template'}",
				"{path: 'template.spec.replicatedJobs[1].template.spec.template', replicas: 4}"),
		},
		"jobs":                     {component(job("2", "4")), component(job("8", "4"))},
		"PyTorchJob":               {component(pyTorch)},
		"RayCluster":               {component(rayCluster)},
		"RayJob":                   {component(rayJob)},
		"a Service with it":        {component(service), component(deployment)},
		"eight pods":               {strings.Repeat(component(pod), 8)},
		"zero pods of a set":       {component(strings.Replace(deployment, "replicas: 2", "replicas: 0", 1), "{path: template.spec.template, replicas: 0}")},
		"declared with its number": {component(deployment, "{path: template.spec.template, replicas: 2}")},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := newCluster().validate(t, components...); len(errs) > 0 {
				t.Errorf("refused: %s", errs.ToAggregate())
			}
		})
	}
}

// [appwrapper-28] [appwrapper-29] Rejected AppWrappers, with path, type and text of the error.
func TestInvalidComponentsAreRejected(t *testing.T) {
	const first = "spec.components[0]."
	set := func(path string) string { return component(jobSet, "{path: '"+path+"'}") }
	for name, tc := range map[string]struct {
		components []string
		want       []string // the beginnings of the errors, in order
	}{
		"no components":  {nil, []string{"spec.components: Invalid value: 0: components contains no podspecs"}},
		"only a Service": {[]string{component(service)}, []string{"spec.components: Invalid value: 0: components contains no podspecs"}},
		"nine pods":      {[]string{strings.Repeat(component(pod), 9)}, []string{"spec.components: Invalid value: 9: components contains 9 podspecs; at most 8 are allowed: remove some, or use several AppWrappers"}},
		"missing path":   {[]string{component(pod, "{replicas: 1}")}, []string{first + "podSets[0].path: Required value: podspec must specify path"}},
		"empty path":     {[]string{component(pod, "{path: ''}")}, []string{first + "podSets[0].path: Required value: podspec must specify path"}},
		"path to metadata": {[]string{component(pod, "{path: template.metadata}")}, []string{
			first + `podSets[0].path: Invalid value: "template.metadata": path does not refer to a v1.PodSpecTemplate: `}},
		"map access on an array": {[]string{set("template.spec.replicatedJobs.template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"array itself":           {[]string{set("template.spec.replicatedJobs")}, []string{first + "podSets[0].path: Invalid value"}},
		"array access on a map":  {[]string{set("template.spec.replicatedJobs[0].template[0]")}, []string{first + "podSets[0].path: Invalid value"}},
		"index 10":               {[]string{set("template.spec.replicatedJobs[10].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"index -1":               {[]string{set("template.spec.replicatedJobs[-1].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"index a10":              {[]string{set("template.spec.replicatedJobs[a10].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},
		"unterminated":           {[]string{set("template.spec.replicatedJobs[1")}, []string{first + "podSets[0].path: Invalid value"}},
		"two ends":               {[]string{set("template.spec.replicatedJobs[1]].template.spec.template")}, []string{first + "podSets[0].path: Invalid value"}},

		"another namespace": {[]string{component(awayPod)}, []string{first + "template.metadata.namespace: Forbidden: AppWrappers cannot create objects in other namespaces"}},
		"nested AppWrapper": {[]string{component(nestedAW), component(pod)}, []string{first + "template: Forbidden: Nested AppWrappers are forbidden"}},
		"nested, any version": {[]string{component(strings.Replace(nestedAW, "v1beta2", "v1beta1", 1)), component(pod)}, []string{
			first + "template: Forbidden: Nested AppWrappers are forbidden"}},

		"declared twice": {[]string{component(strange, "{path: template}"), component(pod, "{path: template}", "{path: template}")}, []string{
			first + "template: Invalid value", first + "podSets[0].path", "spec.components[1].podSets: Invalid value: 2: "}},
		"another number": {[]string{component(deployment, "{path: template.spec.template, replicas: 3}")}, []string{
			first + "podSets: Invalid value: 1: replica count 3 differs from inferred count 2 for PodSet at path position 'template.spec.template': correct replicas"}},
		"inference fails": {[]string{component("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: x, template: {spec: {}}}}"), component(pod)}, []string{
			first + `template: Invalid value: "Deployment.apps": error inferring PodSets: `}},
		"negative replicas": {[]string{component(pod), component(strings.Replace(pod, "kind: Pod", "kind: ConfigMap", 1), "{path: template, replicas: -1}")}, []string{
			"spec.components[1].podSets[0].replicas: Invalid value: -1: "}},

		"no kind":               {[]string{component("{apiVersion: v1}"), component(pod)}, []string{first + `template: Invalid value: "{\"apiVersion\":\"v1\"}": failed to decode as JSON`}},
		"no object":             {[]string{component("[]"), component(pod)}, []string{first + "template: Invalid value: \"[]\": failed to decode as JSON"}},
		"malformed apiVersion":  {[]string{component("{apiVersion: a/b/c, kind: Pod}"), component(pod)}, []string{first + "template: Invalid value"}},
		"malformed metadata":    {[]string{component("{apiVersion: v1, kind: Pod, metadata: text}"), component(pod)}, []string{first + "template: Invalid value"}},
		"long invalid template": {[]string{component("{apiVersion: v1, text: " + strings.Repeat("x", 100) + "}"), component(pod)}, []string{first + `template: Invalid value: "{\"apiVersion\":\"v1\",\"text\":\"`}},

		"cluster scope": {[]string{component(namespaceT), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create cluster-scoped objects such as Namespace"}},
		"RBAC": {[]string{component(binding), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create RoleBinding.rbac.authorization.k8s.io: objects that grant permissions"}},
		"RBAC of a cluster": {[]string{component(clusterRB), component(pod)}, []string{first + "template: Forbidden: AppWrappers cannot create ClusterRoleBinding"}},
		"RBAC of OpenShift": {[]string{component(strings.Replace(binding, "rbac.authorization.k8s.io", "authorization.openshift.io", 1)), component(pod)}, []string{
			first + "template: Forbidden: AppWrappers cannot create RoleBinding.authorization.openshift.io"}},
		"not served": {[]string{component(strange, "{path: template}"), component(pod)}, []string{
			first + `template: Invalid value: "Strange": the cluster serves no Strange.example.com in version v1: install`,
			first + "podSets[0].path: Invalid value"}},

		"several invalid components": {[]string{component(awayPod, "{path: ''}"), component(binding)}, []string{
			first + "template.metadata.namespace: Forbidden", first + "podSets[0].path: Required value", first + "podSets: Invalid value", "spec.components[1].template: Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(newCluster().validate(t, tc.components...))
			for _, want := range tc.want {
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("no error starts with %q among:\n%s", want, strings.Join(got, "\n"))
				}
			}
			if len(got) < len(tc.want) {
				t.Errorf("%d errors, want at least %d", len(got), len(tc.want))
			}
		})
	}
}

// [D34] An invalid template is one error, and the other components are validated too.
func TestUndecodableTemplateIsOneError(t *testing.T) {
	got := lines(newCluster("pods").validate(t, component("{}", "{path: template}"), component(pod)))
	if len(got) != 2 || !strings.Contains(got[0], "failed to decode") || !strings.Contains(got[1], "is not authorized to create pods") {
		t.Errorf("got errors %q", got)
	}
}

// Of thousands of unknown components only the first are looked up.
func TestCreateLimitsErrors(t *testing.T) {
	got := lines(newCluster().validate(t, strings.Repeat(component(strange), 1000)))
	if len(got) != pkgadmission.MaxErrors+1 || !strings.Contains(got[pkgadmission.MaxErrors], "was not checked") {
		t.Errorf("%d errors: %q", len(got), got)
	}
}

// [D12] A name is rejected if it is not a valid label, or too long for the name of the last pod set.
func TestInvalidNamesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		name, queue string
		pods        int
		want        string
	}{
		"short":                       {name: "aw"},
		"61":                          {name: strings.Repeat("a", 61)},
		"61 with eight sets":          {name: strings.Repeat("a", 61), pods: 8},
		"62":                          {name: strings.Repeat("a", 62), want: "must be at most 61 characters"},
		"64":                          {name: strings.Repeat("a", 64), want: "this name has 64"},
		"dots without a queue":        {name: "a.b"},
		"dots in a queue":             {name: "a.b", queue: "q", want: "must have no dots"},
		"room for two digits":         {name: strings.Repeat("a", 61), pods: 11, want: "at most 60 characters"},
		"no pod sets is another tale": {name: "aw", pods: -1},
	} {
		wrapper := wrapperOf(t, component(pod))
		wrapper.Name, wrapper.Labels = tc.name, map[string]string{"kueue.x-k8s.io/queue-name": tc.queue}
		errs := nameErrors(wrapper, tc.pods)
		if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) || errs[0].Field != "metadata.name") {
			t.Errorf("%s: got %v, want %q", name, errs, tc.want)
		}
	}
}

// [appwrapper-33] The access review contains user, group, version, resource and namespace; equal components share one review.
func TestAccessReview(t *testing.T) {
	c := newCluster("deployments")
	got := lines(c.validate(t, component(pod), component(deployment), component(pod), component(deployment)))
	want := []string{
		"spec.components[1].template: Forbidden: User alice@example.org is not authorized to create deployments.apps in team: grant the user this permission",
		"spec.components[3].template: Forbidden: User alice@example.org is not authorized to create deployments.apps in team: grant the user this permission",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantReviews := []authorizationv1.ResourceAttributes{
		{Namespace: home, Verb: "create", Version: "v1", Resource: "pods"},
		{Namespace: home, Verb: "create", Group: "apps", Version: "v1", Resource: "deployments"},
	}
	if diff := cmp.Diff(wantReviews, c.reviewed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]authenticationv1.UserInfo{alice, alice}, c.users); diff != "" {
		t.Error(diff)
	}
}

// Forbidden kinds cause no access review.
func TestForbiddenKindsCauseNoAccessReview(t *testing.T) {
	c := newCluster()
	c.validate(t, component(binding), component(namespaceT), component(nestedAW), component(strange))
	if len(c.reviewed) > 0 {
		t.Errorf("unexpected access reviews %v", c.reviewed)
	}
}

// [D6] A Route with a custom host requires a separate right, which the operator may have and the user may lack.
func TestRoutesNeedTheRightToChooseHosts(t *testing.T) {
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
			t.Errorf("%s: %v, want %d errors", spec, errs, wantErrors)
		}
	}
}

// Errors of the mapper and of access reviews are internal errors, and nothing is admitted.
func TestCreateFailsWithoutCluster(t *testing.T) {
	c := newCluster()
	c.err = errors.New("the API server is away")
	if got := lines(c.validate(t, component(pod))); len(got) != 1 ||
		!strings.HasPrefix(got[0], "spec.components[0].template: Internal error: checking whether alice@example.org may create pods") {
		t.Errorf("got errors %q", got)
	}
	anonymous := &creation{wrapper: wrapperOf(t, component(pod)), namespace: home, mapper: c.mapper, access: c.review}
	if got := lines(anonymous.validate(t.Context())); len(got) != 1 || !strings.HasPrefix(got[0], "spec.components: Internal error: the request names no user") {
		t.Errorf("got errors %q", got)
	}
	away := &creation{wrapper: wrapperOf(t, component(pod)), namespace: home, user: alice, mapper: brokenMapper{}, access: c.review}
	if got := lines(away.validate(t.Context())); len(got) != 1 || !strings.HasPrefix(got[0], "spec.components[0].template: Internal error: finding the resource of Pod") {
		t.Errorf("got errors %q", got)
	}
}

type brokenMapper struct{}

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("discovery is away")
}

// Without access reviews scope and group are still checked.
func TestCreateWithoutAccessReview(t *testing.T) {
	request := &creation{wrapper: wrapperOf(t, component(pod), component(binding)), namespace: home, mapper: newCluster().mapper}
	if got := lines(request.validate(context.Background())); len(got) != 1 || !strings.Contains(got[0], "objects that grant permissions") {
		t.Errorf("got errors %q", got)
	}
}
