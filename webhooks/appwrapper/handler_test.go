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

func validatorOf(c *cluster) *validator {
	return &validator{settings: settingsOf(Settings{ReviewAccess: true}), kinds: c.mapper, access: c.review, enabled: true, podSetLimit: always(maxPodSets)}
}

func TestDefaulterAnswers(t *testing.T) {
	d := &defaulter{settingsOf(Settings{DefaultQueueName: "q"})}
	response := d.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(pod)), nil))
	if !response.Allowed || len(response.Patches) != 1 || !strings.Contains(response.Patches[0].Json(), `"kueue.x-k8s.io/queue-name":"q"`) {
		t.Errorf("unexpected response: %+v", response)
	}
	labelled := wrapperOf(t, component(pod))
	labelled.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "own", v1beta2.LabelUser: "alice_example.org", v1beta2.LabelUserID: "u_1"}
	if response := d.Handle(t.Context(), requestOf(t, admissionv1.Create, labelled, nil)); !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("nothing to do, and yet %s", response.Patches)
	}
	if response := d.Handle(t.Context(), requestOf(t, admissionv1.Update, labelled, labelled)); !response.Allowed || len(response.Patches) > 0 {
		t.Errorf("an update is not labelled: %+v", response)
	}
	// A deletionTimestamp of a new object has no effect.
	forged := wrapperOf(t, component(pod))
	forged.DeletionTimestamp = &metav1.Time{}
	if response := d.Handle(t.Context(), requestOf(t, admissionv1.Create, forged, nil)); len(response.Patches) == 0 {
		t.Error("the AppWrapper did not get the labels of its creator")
	}
	broken := requestOf(t, admissionv1.Create, nil, nil)
	broken.Object = runtime.RawExtension{Raw: []byte("[")}
	if response := d.Handle(t.Context(), broken); response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("got %+v for an undecodable object, want 400", response)
	}
}

func TestValidatorAnswers(t *testing.T) {
	v := validatorOf(newCluster("deployments"))
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(pod)), nil)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("got %+v, want the AppWrapper allowed without warnings", response)
	}
	response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(deployment), component(awayPod)), nil))
	if response.Allowed || response.Result.Code != http.StatusForbidden || response.Result.Reason != metav1.StatusReasonForbidden {
		t.Fatalf("unexpected response.Result: %+v", response.Result)
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
			t.Errorf("%q lacks %q", response.Result.Message, cause.Message)
		}
	}
	// Clients select their message by the code, so invalid input has another code than missing rights.
	away := v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(pod), component(awayPod)), nil))
	changed := v.Handle(t.Context(), requestOf(t, admissionv1.Update, wrapperOf(t, component(service)), wrapperOf(t, component(pod))))
	for _, response := range []admission.Response{away, changed} {
		if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
			t.Errorf("unexpected response.Result: %+v", response.Result)
		}
	}
	for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
		if response := v.Handle(t.Context(), requestOf(t, operation, nil, nil)); !response.Allowed {
			t.Errorf("%s: unexpected response: %+v", operation, response)
		}
	}
}

// [D24] [D19] Annotations without effect and unknown ones cause warnings on creation and on a change of annotations.
func TestWarningsOfTheValidator(t *testing.T) {
	v := validatorOf(newCluster())
	wrapper := wrapperOf(t, component(strings.Replace(pod, "spec: {", "spec: {tomorrow: 1, ", 1)), component(strings.Replace(service, "port: 80", "prot: 80", 1)))
	wrapper.Annotations = map[string]string{v1beta2.AnnotationPrefix + "delectionOnFailureGracePeriodDuration": "5m"}
	response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapper, nil))
	if !response.Allowed || len(response.Warnings) != 2 || !strings.Contains(response.Warnings[0], "deletionOnFailureGracePeriodDuration") ||
		!strings.Contains(response.Warnings[1], `spec.components[0]: at path position 'template.spec' unknown field "tomorrow"`) {
		t.Errorf("allowed %t with unexpected warnings %q", response.Allowed, response.Warnings)
	}
	same := wrapper.DeepCopy()
	same.Spec.Suspend = true
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, same, wrapper)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("annotations did not change: %q", response.Warnings)
	}
	same.Annotations[v1beta2.AnnotationPrefix+"other"] = "x"
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, same, wrapper)); !response.Allowed || len(response.Warnings) != 2 {
		t.Errorf("unexpected response.Warnings: %q", response.Warnings)
	}
	undecodable := wrapperOf(t, component("{}"), component("{apiVersion: apps/v1, kind: Deployment, spec: {replicas: x}}"))
	if got := warnings(undecodable); len(got) > 0 {
		t.Errorf("got warnings %q for an undecodable object, want none", got)
	}
}

// The update of a terminating AppWrapper is allowed; a new AppWrapper cannot be terminating.
func TestUpdateOfTerminatingAppWrapperIsAllowed(t *testing.T) {
	v := validatorOf(newCluster())
	old := storedWrapper(t)
	now := metav1.Now()
	old.DeletionTimestamp = &now
	updated := old.DeepCopy()
	updated.Finalizers, updated.Spec.Components = nil, nil
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, updated, old)); !response.Allowed {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
	forged := storedWrapper(t)
	forged.DeletionTimestamp, forged.Spec.Components = &now, nil
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, forged, storedWrapper(t))); response.Allowed {
		t.Error("an update that sets deletionTimestamp was allowed")
	}
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, forged, nil)); response.Allowed {
		t.Error("a new AppWrapper with a deletionTimestamp was allowed")
	}
}

// [D17] While the component is disabled, AppWrappers are validated and stored with a warning: they are created when it is enabled, and the
// controller cannot review the permissions of their author.
func TestDisabledComponentValidates(t *testing.T) {
	v := validatorOf(newCluster("deployments"))
	v.enabled = false
	for name, tc := range map[string]struct {
		component string
		allowed   bool
	}{
		"author may create the kind":     {pod, true},
		"no user may create the kind":    {clusterRB, false},
		"author may not create the kind": {deployment, false},
	} {
		response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(tc.component)), nil))
		if response.Allowed != tc.allowed || len(response.Warnings) == 0 || !strings.Contains(strings.Join(response.Warnings, " "), "disabled") {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
	updated := storedWrapper(t)
	updated.Spec.Components = nil
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, updated, storedWrapper(t))); response.Allowed {
		t.Error("an update that removes components was allowed")
	}
}

// Components that refer to objects of the manager, and kinds whose webhook reviews the permissions of their author, are rejected for all users.
func TestComponentsCannotReferToTheManager(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Namespace: home, Account: "manager"}
	guards := pkgadmission.Guards{Rules: rules, Access: newCluster().review}.ForManagerOnly()
	const thief = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: manager, containers: [{name: main, image: a}]}}"
	handler := guards.Wrap(validatorOf(newCluster()), kind, referencesOf)
	response := handler.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(thief)), nil))
	if response.Allowed || !strings.Contains(response.Result.Message, "spec.components[0].template.spec.serviceAccountName") {
		t.Errorf("unexpected response: %+v", response)
	}
	if response := handler.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapperOf(t, component(pod)), nil)); !response.Allowed {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
	for kind := range createdByUserOnly {
		mapping := &meta.RESTMapping{GroupVersionKind: kind.WithVersion("v1"), Scope: meta.RESTScopeNamespace}
		if KindProblem(mapping) == "" {
			t.Errorf("%s can be a component", kind)
		}
	}
}

// Without settings creations are rejected, since default queue or access review would be skipped; updates need no settings.
func TestSettingsThatCannotBeRead(t *testing.T) {
	wrapper := wrapperOf(t, component(pod))
	v := &validator{settings: noSettings, kinds: newCluster().mapper}
	for name, response := range map[string]admission.Response{
		"defaulting": (&defaulter{noSettings}).Handle(t.Context(), requestOf(t, admissionv1.Create, wrapper, nil)),
		"validation": v.Handle(t.Context(), requestOf(t, admissionv1.Create, wrapper, nil)),
	} {
		if response.Allowed || response.Result.Code != http.StatusInternalServerError ||
			!strings.Contains(response.Result.Message, "settings of the component appwrapper: resetPause is wrong") {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
	}
	if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, wrapper, wrapper)); !response.Allowed {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
}

func TestUndecodableRequests(t *testing.T) {
	v := validatorOf(newCluster())
	good := wrapperOf(t, component(pod))
	for name, change := range map[string]func() (object, old []byte, operation admissionv1.Operation){
		"create": func() ([]byte, []byte, admissionv1.Operation) { return []byte("{"), nil, admissionv1.Create },
		"update": func() ([]byte, []byte, admissionv1.Operation) {
			return []byte(`{"spec":1}`), rawOf(t, good), admissionv1.Update
		},
		"update, old object":  func() ([]byte, []byte, admissionv1.Operation) { return rawOf(t, good), []byte("{"), admissionv1.Update },
		"update, no old word": func() ([]byte, []byte, admissionv1.Operation) { return rawOf(t, good), nil, admissionv1.Update },
	} {
		request := requestOf(t, "", nil, nil)
		request.Object.Raw, request.OldObject.Raw, request.Operation = change()
		if response := v.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
}

// [appwrapper-33] The access review contains name, UID, groups and extra of the user; both allowed and denied are evaluated.
func TestAccessReviewContainsUser(t *testing.T) {
	right := authorizationv1.ResourceAttributes{Namespace: home, Verb: "create", Version: "v1", Resource: "pods"}
	for name, tc := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		want   bool
	}{
		"allowed":            {status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}, want: true},
		"no opinion":         {},
		"denied":             {status: authorizationv1.SubjectAccessReviewStatus{Denied: true}},
		"allowed and denied": {status: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}},
		"request fails":      {err: errors.New("away")},
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
			got, err := pkgadmission.Reviewer(client.AuthorizationV1().SubjectAccessReviews())(context.Background(), alice, right)
			if got != tc.want || (err != nil) != (tc.err != nil) {
				t.Errorf("Reviewer returned %t, error %v", got, err)
			}
			want := authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &right, User: "alice@example.org", UID: "u:1", Groups: []string{"system:authenticated", "team"},
				Extra: map[string]authorizationv1.ExtraValue{"scopes": {"user:full"}},
			}
			if diff := cmp.Diff(want, request.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}
