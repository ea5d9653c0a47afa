package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// shipped are the default rules of an installation.
var shipped = Rules{Mode: Enforce, Level: Baseline, Namespace: "home", Account: "odh-platform-operator-controller-manager"}

var eve = authenticationv1.UserInfo{Username: "eve", Groups: []string{"team"}}

// accessWith returns an Access that grants the permissions, in the format of describePermission.
func accessWith(permissions ...string) Access {
	return func(_ context.Context, _ authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
		return slices.Contains(permissions, describePermission(permission)), nil
	}
}

// referencesOfPod returns the references of a pod template in YAML.
func referencesOfPod(t *testing.T, namespace, text string) References {
	t.Helper()
	pod := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	u, path := References{Namespace: namespace}, field.NewPath("spec")
	u.AddPod(&pod.Spec, path)
	u.AddMetadata(Label, pod.Labels, path.Child("labels"))
	u.AddMetadata(Annotation, pod.Annotations, path.Child("annotations"))
	u.AddPodSecurityViolations(shipped.Level, &pod.ObjectMeta, &pod.Spec, path)
	return u
}

func TestReview(t *testing.T) {
	const (
		pods    = "create pods in namespace team"
		plain   = "spec: {containers: [{name: c, image: a}]}"
		secret  = "spec: {containers: [{name: c, image: a, env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}"
		moved   = "spec: {containers: [{name: c, image: a, envFrom: [{secretRef: {name: s}}]}]}"
		account = "spec: {serviceAccountName: robot, containers: []}"
		host    = "spec: {containers: [], volumes: [{name: v, hostPath: {path: /}}]}"
		hosts   = "spec: {containers: [], volumes: [{name: v, hostPath: {path: /}}, {name: w, hostPath: {path: /etc}}]}"
		ports   = "spec: {containers: [{name: c, ports: [{containerPort: 1, hostPort: 80}]}]}"
		root    = "spec: {containers: [{name: c, securityContext: {privileged: true}}]}"
		token   = "spec: {containers: [], volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}"
		claim   = "spec: {containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}"
		pull    = "spec: {containers: [], imagePullSecrets: [{name: s}]}"
		label   = "{metadata: {labels: {tier: db}}, spec: {containers: []}}"
	)
	for name, tc := range map[string]struct {
		object, before string
		permissions    []string
		wantError      string // part of the message; empty if the object is allowed
	}{
		"image without permission":                           {object: plain, wantError: `spec.containers[0].image: Forbidden: user "eve" cannot let pods use image "a", because that requires permission to ` + pods},
		"image with permission to create pods":               {object: plain, permissions: []string{pods}},
		"unchanged image":                                    {object: plain, before: plain},
		"another command":                                    {object: "spec: {containers: [{name: c, image: a, command: [x]}]}", before: plain, wantError: `container "c"`},
		"another image":                                      {object: "spec: {containers: [{name: c, image: b}]}", before: plain, wantError: `image "b"`},
		"more resources":                                     {object: "spec: {containers: [{name: c, image: a, resources: {limits: {cpu: 1}}}]}", before: plain},
		"added Secret":                                       {object: secret, before: plain, wantError: `Secret "s"`},
		"Secret with permission to read it":                  {object: pull, permissions: []string{"get secrets s in namespace team"}},
		"Secret with permission for another Secret":          {object: pull, permissions: []string{"get secrets t in namespace team"}, wantError: `spec.imagePullSecrets[0].name: Forbidden`},
		"Secret in another field":                            {object: moved, before: secret, wantError: `container "c"`},
		"ServiceAccount":                                     {object: account, wantError: `ServiceAccount "robot", because that requires permission to create pods in namespace team, or to create serviceaccounts/token robot in namespace team`},
		"ServiceAccount with permission to create its token": {object: account, permissions: []string{"create serviceaccounts/token robot in namespace team"}},
		"hostPath":                                           {object: host, permissions: []string{pods}, wantError: `the Pod Security level baseline does not allow hostPath volumes (volume "v")`},
		"unchanged hostPath":                                 {object: host, before: host},
		"additional hostPath":                                {object: hosts, before: host, permissions: []string{pods}, wantError: "hostPath"},
		"hostPort":                                           {object: ports, permissions: []string{pods}, wantError: "hostPort"},
		"a privileged container":                             {object: root, permissions: []string{pods}, wantError: "privileged"},
		"a token":                                            {object: token, wantError: "token"},
		"pod certificate":                                    {object: "spec: {containers: [], volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s, keyType: ED25519}}]}}]}", wantError: "token"},
		"claim":                                              {object: claim, wantError: `volume "v"`},
		"a label":                                            {object: label, wantError: `label of pods "tier"`},
		"label with permission to create pods":               {object: label, permissions: []string{pods}},
		"label with which the manager selects pods":          {object: "{metadata: {labels: {platform.opendatahub.io/manager: x}}, spec: {containers: []}}", permissions: []string{pods}, wantError: "the platform selects pods by it"},
		"label with which Ray selects pods":                  {object: "{metadata: {labels: {ray.io/node-type: head}}, spec: {containers: []}}", permissions: []string{pods}, wantError: "the platform selects pods by it"},
		"ServiceAccount in another namespace, same name as the manager's": {object: "spec: {serviceAccountName: odh-platform-operator-controller-manager, containers: []}", permissions: []string{pods}},
		"Secret in another namespace, same name as the manager's":         {object: "spec: {imagePullSecrets: [{name: odh-platform-operator-webhook-cert}], containers: []}", permissions: []string{pods}},
	} {
		t.Run(name, func(t *testing.T) {
			before := References{}
			if tc.before != "" {
				before = referencesOfPod(t, "team", tc.before)
			}
			got, err := shipped.Review(t.Context(), accessWith(tc.permissions...), eve, referencesOfPod(t, "team", tc.object), before)
			if err != nil || len(got.Warnings) > 0 {
				t.Fatalf("got warnings %v, error %v, want neither", got.Warnings, err)
			}
			if text := errs(got.Errors); (text == "") != (tc.wantError == "") || !strings.Contains(text, tc.wantError) {
				t.Errorf("got %q, want %q", text, tc.wantError)
			}
		})
	}
}

// A user who cannot read a Secret must not send its content to another server.
func TestEgressURLs(t *testing.T) {
	port := func(n int32) *int32 { return &n }
	withHost := func(host string, port *int32) References {
		u, path := References{Namespace: "team"}, field.NewPath("spec")
		u.Add(Secret, "s", path.Child("passwordSecret"))
		u.AddEgressURL("s", host, port, path.Child("host"))
		return u
	}
	withoutHost := References{Namespace: "team"}
	withoutHost.Add(Secret, "s", field.NewPath("spec", "passwordSecret"))
	const forbidden = `spec.host: Forbidden: user "eve" cannot let pods use another server for Secret "s", because that requires permission to create pods in namespace team, or to get secrets s in namespace team`
	for name, tc := range map[string]struct {
		object, before References
		permissions    []string
		wantError      string
	}{
		"no change":                     {object: withHost("db", port(1)), before: withHost("db", port(1))},
		"another host":                  {object: withHost("evil", port(1)), before: withHost("db", port(1)), wantError: forbidden},
		"another port":                  {object: withHost("db", port(2)), before: withHost("db", port(1)), wantError: forbidden},
		"host added":                    {object: withHost("evil", nil), before: withoutHost, wantError: forbidden},
		"host removed":                  {object: withHost("", nil), before: withHost("db", nil)},
		"permission to read the Secret": {object: withHost("moved", nil), before: withHost("db", nil), permissions: []string{"get secrets s in namespace team"}},
		"permission for another Secret": {object: withHost("moved", nil), before: withHost("db", nil), permissions: []string{"get secrets t in namespace team"}, wantError: forbidden},
		"permission to create pods":     {object: withHost("moved", nil), before: withHost("db", nil), permissions: []string{"create pods in namespace team"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := shipped.Review(t.Context(), accessWith(tc.permissions...), eve, tc.object, tc.before)
			if text := errs(got.Errors); err != nil || (text == "") != (tc.wantError == "") || !strings.HasPrefix(text, tc.wantError) {
				t.Errorf("got %q, %v, want %q", text, err, tc.wantError)
			}
		})
	}
}

func errs(list field.ErrorList) string {
	if len(list) == 0 {
		return ""
	}
	return list.ToAggregate().Error()
}

// Objects of the manager and labels by which it selects pods are forbidden in every mode: by Review for all users, and by Forbidden.
func TestManagerObjectsAreAlwaysForbidden(t *testing.T) {
	allowAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, nil
	}
	for name, text := range map[string]string{
		"ServiceAccount":                            "spec: {serviceAccountName: odh-platform-operator-controller-manager, containers: []}",
		"ServiceAccount in the deprecated field":    "spec: {serviceAccount: odh-platform-operator-controller-manager, containers: []}",
		"certificate":                               "spec: {containers: [{name: c, envFrom: [{secretRef: {name: odh-platform-operator-webhook-cert}}]}]}",
		"key of the certificate":                    "spec: {containers: [{name: c, env: [{name: X, valueFrom: {secretKeyRef: {name: odh-platform-operator-webhook-cert, key: ca.key}}}]}]}",
		"volume with the certificate":               "spec: {containers: [], volumes: [{name: v, secret: {secretName: odh-platform-operator-webhook-cert}}]}",
		"projected certificate":                     "spec: {containers: [], volumes: [{name: v, projected: {sources: [{secret: {name: odh-platform-operator-webhook-cert}}]}}]}",
		"token":                                     "spec: {imagePullSecrets: [{name: odh-platform-operator-controller-manager-token-x}], containers: []}",
		"label with which the manager selects pods": "{metadata: {labels: {platform.opendatahub.io/manager: odh-platform-operator}}, spec: {containers: []}}",
	} {
		for _, namespace := range []string{"home", ""} {
			for _, mode := range []Mode{Enforce, Warn, Off} {
				rules := shipped
				rules.Mode = mode
				references := referencesOfPod(t, namespace, text)
				got, err := rules.Review(t.Context(), allowAll, eve, references, References{})
				if err != nil || len(got.Errors) == 0 {
					t.Errorf("%s, namespace %q, mode %s: got no errors, error %v", name, namespace, mode, err)
				}
				if rules.Forbidden(references) == nil {
					t.Errorf("%s, namespace %q, %s: Forbidden returned no error", name, namespace, mode)
				}
			}
		}
	}
}

func TestModeDeterminesErrorsAndWarnings(t *testing.T) {
	references := referencesOfPod(t, "team", "spec: {containers: [{name: c, image: a, securityContext: {privileged: true}}]}")
	for mode, want := range map[Mode]struct {
		errors, warnings int
		forbidden        bool
	}{Enforce: {3, 0, true}, Warn: {0, 3, false}, Off: {0, 0, false}} {
		rules := shipped
		rules.Mode = mode
		got, err := rules.Review(t.Context(), accessWith(), eve, references, References{})
		if err != nil || len(got.Errors) != want.errors || len(got.Warnings) != want.warnings {
			t.Errorf("%s: unexpected errors %v or warnings %v, error %v", mode, got.Errors, got.Warnings, err)
		}
		if err := rules.Forbidden(references); (err != nil) != want.forbidden {
			t.Errorf("%s: unexpected error: %v", mode, err)
		}
	}
}

// A failed access review does not allow a request.
func TestReviewsThatFail(t *testing.T) {
	failing := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, errors.New("unreachable")
	}
	if _, err := shipped.Review(t.Context(), failing, eve, referencesOfPod(t, "team", "spec: {containers: [{name: c, image: a}]}"), References{}); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("got error %v, want that of the review", err)
	}
}

// Each permission is reviewed once per request.
func TestPermissionsAreReviewedOnce(t *testing.T) {
	requests := map[string]int{}
	access := func(_ context.Context, _ authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
		requests[describePermission(permission)]++
		return true, nil
	}
	references := referencesOfPod(t, "team", "spec: {containers: [{name: c, image: a}, {name: d, image: b, envFrom: [{secretRef: {name: s}}]}]}")
	if _, err := shipped.Review(t.Context(), access, eve, references, References{}); err != nil || len(requests) != 1 || requests["create pods in namespace team"] != 1 {
		t.Errorf("got reviews %v, error %v, want one for each permission", requests, err)
	}
}

// Review stops after MaxErrors errors, and requests no access reviews after MaxErrors warnings. In modes Warn and Off, it still finds a
// later reference to an object of the manager.
func TestReviewsStopAfterMaxErrors(t *testing.T) {
	references := References{Namespace: "home"}
	for i := range 1000 {
		references.Add(Secret, fmt.Sprint("s-", i), field.NewPath("spec"))
	}
	references.Add(Account, shipped.Account, field.NewPath("spec", "account"))
	for mode, want := range map[Mode]string{Enforce: "was not checked", Warn: "it is the ServiceAccount of the manager", Off: "it is the ServiceAccount of the manager"} {
		requests := 0
		access := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
			requests++
			return false, nil
		}
		rules := shipped
		rules.Mode = mode
		got, err := rules.Review(t.Context(), access, eve, references, References{})
		if err != nil || requests > MaxErrors+1 || len(got.Errors) > MaxErrors+1 || len(got.Warnings) > MaxErrors || !strings.Contains(errs(got.Errors), want) {
			t.Errorf("%s: got %d reviews, %d errors and %d warnings, error %v", mode, requests, len(got.Errors), len(got.Warnings), err)
		}
	}
}

// A pod without a security context complies with level Restricted, because the manager sets the context.
func TestRestrictedAllowsDefaultedSecurityContext(t *testing.T) {
	u := References{}
	u.AddPodSecurityViolations(Restricted, &metav1.ObjectMeta{}, &corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}, field.NewPath("spec"))
	if len(u.items) > 0 {
		t.Errorf("got violations %v, want none", u.items)
	}
	u.AddPodSecurityViolations(Restricted, &metav1.ObjectMeta{}, &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(false)}}, field.NewPath("spec"))
	if len(u.items) != 1 {
		t.Errorf("got violations %v, want one", u.items)
	}
}
