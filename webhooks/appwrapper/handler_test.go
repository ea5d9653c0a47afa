package appwrapper

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

func newValidator(c *cluster) *validator {
	return &validator{settings: fixedSettings(Settings{ReviewAccess: true}), mapper: c.mapper, access: c.review, enabled: true, podSetLimit: fixedLimit(maxPodSets)}
}

func TestDefaulterHandle(t *testing.T) {
	d := &defaulter{fixedSettings(Settings{DefaultQueueName: "q"})}
	response := d.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(pod)), nil))
	if !response.Allowed || len(response.Patches) != 1 || !strings.Contains(response.Patches[0].Json(), `"kueue.x-k8s.io/queue-name":"q"`) {
		t.Errorf("got response %+v, want a patch with the default queue", response)
	}
	labeled := newAppWrapper(t, component(pod))
	labeled.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "own", v1beta2.LabelUser: "alice_example.org", v1beta2.LabelUserID: "u_1"}
	if response := d.Handle(t.Context(), newRequest(t, admissionv1.Create, labeled, nil)); !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("create with all labels: got patches %s, want none", response.Patches)
	}
	if response := d.Handle(t.Context(), newRequest(t, admissionv1.Update, labeled, labeled)); !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("update: got response %+v, want no patches", response)
	}
	// A deletionTimestamp of a new object has no effect.
	forged := newAppWrapper(t, component(pod))
	forged.DeletionTimestamp = &metav1.Time{}
	if response := d.Handle(t.Context(), newRequest(t, admissionv1.Create, forged, nil)); len(response.Patches) == 0 {
		t.Error("got no patches, want the labels of the creator")
	}
	undecodable := newRequest(t, admissionv1.Create, nil, nil)
	undecodable.Object = runtime.RawExtension{Raw: []byte("[")}
	if response := d.Handle(t.Context(), undecodable); response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("undecodable object: got response %+v, want code 400", response)
	}
}

func TestValidatorHandle(t *testing.T) {
	v := newValidator(newCluster("deployments"))
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(pod)), nil)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("got response %+v, want the AppWrapper allowed without warnings", response)
	}
	response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(deployment), component(otherNamespacePod)), nil))
	if response.Allowed || response.Result.Code != http.StatusForbidden || response.Result.Reason != metav1.StatusReasonForbidden {
		t.Fatalf("got result %+v, want code 403 and reason Forbidden", response.Result)
	}
	wantCauses := []metav1.StatusCause{
		{Type: "FieldValueForbidden", Field: "spec.components[0].template", Message: "Forbidden: User alice@example.org is not authorized to create deployments.apps in team: grant the user this permission"},
		{Type: "FieldValueForbidden", Field: "spec.components[1].template.metadata.namespace", Message: "Forbidden: AppWrappers cannot create objects in other namespaces: remove metadata.namespace, or create the AppWrapper in that namespace"},
	}
	if diff := cmp.Diff(wantCauses, response.Result.Details.Causes); diff != "" {
		t.Error(diff)
	}
	for _, cause := range wantCauses {
		if !strings.Contains(response.Result.Message, cause.Field+": "+cause.Message) {
			t.Errorf("got message %q, want it to contain %q", response.Result.Message, cause.Message)
		}
	}
	// Clients select their message by the code: the code for invalid input must differ from that for missing permissions.
	invalid := v.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(pod), component(otherNamespacePod)), nil))
	changed := v.Handle(t.Context(), newRequest(t, admissionv1.Update, newAppWrapper(t, component(service)), newAppWrapper(t, component(pod))))
	for _, response := range []admission.Response{invalid, changed} {
		if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
			t.Errorf("got result %+v, want code 422 and reason Invalid", response.Result)
		}
	}
	for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
		if response := v.Handle(t.Context(), newRequest(t, operation, nil, nil)); !response.Allowed {
			t.Errorf("%s: got response %+v, want it allowed", operation, response)
		}
	}
}

// [D24] [D19] Annotations without effect cause warnings on creation and on a change of annotations, unknown fields of pods on creation.
func TestValidatorWarnings(t *testing.T) {
	v := newValidator(newCluster())
	wrapper := newAppWrapper(t, component(strings.Replace(pod, "spec: {", "spec: {tomorrow: 1, ", 1)), component(strings.Replace(service, "port: 80", "prot: 80", 1)))
	wrapper.Annotations = map[string]string{v1beta2.AnnotationPrefix + "delectionOnFailureGracePeriodDuration": "5m"}
	response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, wrapper, nil))
	if !response.Allowed || len(response.Warnings) != 2 || !strings.Contains(response.Warnings[0], "deletionOnFailureGracePeriodDuration") ||
		!strings.Contains(response.Warnings[1], `spec.components[0]: at path position 'template.spec' unknown field "tomorrow"`) {
		t.Errorf("create: got allowed %t, warnings %q, want it allowed with a warning for the annotation and one for the field", response.Allowed, response.Warnings)
	}
	updated := wrapper.DeepCopy()
	updated.Spec.Suspend = true
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, updated, wrapper)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("update without a change of annotations: got warnings %q, want none", response.Warnings)
	}
	updated.Annotations[v1beta2.AnnotationPrefix+"other"] = "x"
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, updated, wrapper)); !response.Allowed || len(response.Warnings) != 2 {
		t.Errorf("update of annotations: got warnings %q, want two", response.Warnings)
	}
	undecodable := newAppWrapper(t, component("{}"), component("{apiVersion: apps/v1, kind: Deployment, spec: {replicas: x}}"))
	if got := warnings(undecodable); len(got) > 0 {
		t.Errorf("undecodable components: got warnings %q, want none", got)
	}
}

// Any update of a terminating AppWrapper is allowed. A deletionTimestamp in a request does not make an AppWrapper terminating.
func TestUpdateOfTerminatingAppWrapperIsAllowed(t *testing.T) {
	v := newValidator(newCluster())
	old := storedAppWrapper(t)
	now := metav1.Now()
	old.DeletionTimestamp = &now
	updated := old.DeepCopy()
	updated.Finalizers, updated.Spec.Components = nil, nil
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, updated, old)); !response.Allowed {
		t.Errorf("got result %+v, want the update allowed", response.Result)
	}
	forged := storedAppWrapper(t)
	forged.DeletionTimestamp, forged.Spec.Components = &now, nil
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, forged, storedAppWrapper(t))); response.Allowed {
		t.Error("got an update with a deletionTimestamp allowed, want it validated and rejected")
	}
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, forged, nil)); response.Allowed {
		t.Error("got a new AppWrapper with a deletionTimestamp allowed, want it validated and rejected")
	}
}

// [D17] While the component is disabled, AppWrappers are validated and stored with a warning: the controller runs them when the component is
// enabled, and cannot review the permissions of their author.
func TestDisabledComponentValidates(t *testing.T) {
	v := newValidator(newCluster("deployments"))
	v.enabled = false
	for name, tc := range map[string]struct {
		component string
		allowed   bool
	}{
		"author may create the kind":       {pod, true},
		"kind is forbidden in AppWrappers": {clusterRoleBinding, false},
		"author may not create the kind":   {deployment, false},
	} {
		response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(tc.component)), nil))
		if response.Allowed != tc.allowed || len(response.Warnings) == 0 || !strings.Contains(strings.Join(response.Warnings, " "), "disabled") {
			t.Errorf("%s: got response %+v, want allowed %t and a warning", name, response, tc.allowed)
		}
	}
	updated := storedAppWrapper(t)
	updated.Spec.Components = nil
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, updated, storedAppWrapper(t))); response.Allowed {
		t.Error("got an update that removes components allowed, want it rejected")
	}
}

// Components that refer to objects of the manager, and kinds whose webhook reviews the permissions of their author, are rejected for all users.
func TestComponentsCannotReferToManager(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Namespace: testNamespace, Account: "manager"}
	guards := pkgadmission.Guards{Rules: rules, Access: newCluster().review}.ForManagerOnly()
	const managerPod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: manager, containers: [{name: main, image: a}]}}"
	handler := guards.Wrap(newValidator(newCluster()), kind, referencesOf)
	response := handler.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(managerPod)), nil))
	if response.Allowed || !strings.Contains(response.Result.Message, "spec.components[0].template.spec.serviceAccountName") {
		t.Errorf("got response %+v, want the ServiceAccount rejected", response)
	}
	if response := handler.Handle(t.Context(), newRequest(t, admissionv1.Create, newAppWrapper(t, component(pod)), nil)); !response.Allowed {
		t.Errorf("got result %+v, want the pod allowed", response.Result)
	}
	for kind := range createdByUserOnly {
		mapping := &meta.RESTMapping{GroupVersionKind: kind.WithVersion("v1"), Scope: meta.RESTScopeNamespace}
		if KindProblem(mapping) == "" {
			t.Errorf("got no problem for %s, want it rejected", kind)
		}
	}
}

// Creation fails without settings, because the default queue or the access review would be skipped. An update needs settings only if
// isStart reports true.
func TestCreateFailsWithoutSettings(t *testing.T) {
	wrapper := newAppWrapper(t, component(pod))
	v := &validator{settings: failingSettings, mapper: newCluster().mapper}
	for name, response := range map[string]admission.Response{
		"defaulting": (&defaulter{failingSettings}).Handle(t.Context(), newRequest(t, admissionv1.Create, wrapper, nil)),
		"validation": v.Handle(t.Context(), newRequest(t, admissionv1.Create, wrapper, nil)),
	} {
		if response.Allowed || response.Result.Code != http.StatusInternalServerError ||
			!strings.Contains(response.Result.Message, "settings of the component appwrapper: resetPause is invalid") {
			t.Errorf("%s: got result %+v, want code 500 and the error", name, response.Result)
		}
	}
	if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, wrapper, wrapper)); !response.Allowed {
		t.Errorf("update: got result %+v, want it allowed", response.Result)
	}
}

func TestUndecodableRequestsAreRejected(t *testing.T) {
	v := newValidator(newCluster())
	valid := newAppWrapper(t, component(pod))
	for name, change := range map[string]func() (object, old []byte, operation admissionv1.Operation){
		"create": func() ([]byte, []byte, admissionv1.Operation) { return []byte("{"), nil, admissionv1.Create },
		"update": func() ([]byte, []byte, admissionv1.Operation) {
			return []byte(`{"spec":1}`), toJSON(t, valid), admissionv1.Update
		},
		"update, undecodable old object": func() ([]byte, []byte, admissionv1.Operation) {
			return toJSON(t, valid), []byte("{"), admissionv1.Update
		},
		"update, no old object": func() ([]byte, []byte, admissionv1.Operation) { return toJSON(t, valid), nil, admissionv1.Update },
	} {
		request := newRequest(t, "", nil, nil)
		request.Object.Raw, request.OldObject.Raw, request.Operation = change()
		if response := v.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
			t.Errorf("%s: got response %+v, want code 400", name, response)
		}
	}
}

// [appwrapper-33] The access review contains name, UID, groups and extra of the user. A denial takes precedence over an approval.
func TestAccessReviewContainsUser(t *testing.T) {
	permission := authorizationv1.ResourceAttributes{Namespace: testNamespace, Verb: "create", Version: "v1", Resource: "pods"}
	for name, tc := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		want   bool
	}{
		"allowed":            {status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}, want: true},
		"no opinion":         {},
		"denied":             {status: authorizationv1.SubjectAccessReviewStatus{Denied: true}},
		"allowed and denied": {status: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}},
		"request fails":      {err: errors.New("unavailable")},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var request *authorizationv1.SubjectAccessReview
			client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				request = action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				response := request.DeepCopy()
				response.Status = tc.status
				return true, response, tc.err
			})
			got, err := pkgadmission.Reviewer(client.AuthorizationV1().SubjectAccessReviews())(context.Background(), alice, permission)
			if got != tc.want || (err != nil) != (tc.err != nil) {
				t.Errorf("got %t, error %v, want %t, error %v", got, err, tc.want, tc.err)
			}
			want := authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &permission, User: "alice@example.org", UID: "u:1", Groups: []string{"system:authenticated", "team"},
				Extra: map[string]authorizationv1.ExtraValue{"scopes": {"user:full"}},
			}
			if diff := cmp.Diff(want, request.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}
