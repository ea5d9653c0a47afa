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

// shipped are the rules of an installation with its defaults.
var shipped = Rules{Mode: Enforce, Level: Baseline, Namespace: "home", Account: "odh-platform-operator-controller-manager"}

var eve = authenticationv1.UserInfo{Username: "eve", Groups: []string{"team"}}

// holder has the given permissions, written as described writes them.
func holder(rights ...string) Access {
	return func(_ context.Context, _ authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		return slices.Contains(rights, describePermission(right)), nil
	}
}

// usesIn lists what a pod uses whose fields are written in YAML.
func usesIn(t *testing.T, namespace, text string) References {
	t.Helper()
	pod := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	u, path := References{Namespace: namespace}, field.NewPath("spec")
	u.AddPod(&pod.Spec, path)
	u.AddMetadata(Label, pod.Labels, path.Child("labels"))
	u.AddMetadata(Annotation, pod.Annotations, path.Child("annotations"))
	u.AddPrivileges(shipped.Level, &pod.ObjectMeta, &pod.Spec, path)
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
		now, before string
		rights      []string
		refused     string // part of the message; empty if the object is allowed
	}{
		"an image":                                   {now: plain, refused: `spec.containers[0].image: Forbidden: user "eve" cannot let pods use image "a", because that requires permission to ` + pods},
		"an image of who may create pods":            {now: plain, rights: []string{pods}},
		"an image from before":                       {now: plain, before: plain},
		"another command":                            {now: "spec: {containers: [{name: c, image: a, command: [x]}]}", before: plain, refused: `container "c"`},
		"another image":                              {now: "spec: {containers: [{name: c, image: b}]}", before: plain, refused: `image "b"`},
		"more resources":                             {now: "spec: {containers: [{name: c, image: a, resources: {limits: {cpu: 1}}}]}", before: plain},
		"a Secret":                                   {now: secret, before: plain, refused: `Secret "s"`},
		"a Secret that the author may read":          {now: pull, rights: []string{"get secrets s in namespace team"}},
		"a Secret that the author may not read":      {now: pull, rights: []string{"get secrets t in namespace team"}, refused: `spec.imagePullSecrets[0].name: Forbidden`},
		"a Secret at another place":                  {now: moved, before: secret, refused: `container "c"`},
		"an account":                                 {now: account, refused: `ServiceAccount "robot", because that requires permission to create pods in namespace team, or to create serviceaccounts/token robot in namespace team`},
		"account whose token the author may create":  {now: account, rights: []string{"create serviceaccounts/token robot in namespace team"}},
		"a folder of the node":                       {now: host, rights: []string{pods}, refused: `the Pod Security level baseline does not allow hostPath volumes (volume "v")`},
		"a folder of the node from before":           {now: host, before: host},
		"additional hostPath":                        {now: hosts, before: host, rights: []string{pods}, refused: "hostPath"},
		"a port of the node":                         {now: ports, rights: []string{pods}, refused: "hostPort"},
		"a privileged container":                     {now: root, rights: []string{pods}, refused: "privileged"},
		"a token":                                    {now: token, refused: "token"},
		"pod certificate":                            {now: "spec: {containers: [], volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s, keyType: ED25519}}]}}]}", refused: "token"},
		"a claim":                                    {now: claim, refused: `volume "v"`},
		"a label":                                    {now: label, refused: `label of pods "tier"`},
		"a label of who may create pods":             {now: label, rights: []string{pods}},
		"a label by which the manager selects":       {now: "{metadata: {labels: {platform.opendatahub.io/manager: x}}, spec: {containers: []}}", rights: []string{pods}, refused: "the platform selects pods by it"},
		"a label by which Ray selects":               {now: "{metadata: {labels: {ray.io/node-type: head}}, spec: {containers: []}}", rights: []string{pods}, refused: "the platform selects pods by it"},
		"the name of the manager's account":          {now: "spec: {serviceAccountName: odh-platform-operator-controller-manager, containers: []}", rights: []string{pods}},
		"Secret with the name of one of the manager": {now: "spec: {imagePullSecrets: [{name: odh-platform-operator-webhook-cert}], containers: []}", rights: []string{pods}},
	} {
		t.Run(name, func(t *testing.T) {
			before := References{}
			if tc.before != "" {
				before = usesIn(t, "team", tc.before)
			}
			got, err := shipped.Review(t.Context(), holder(tc.rights...), eve, usesIn(t, "team", tc.now), before)
			if err != nil || len(got.Warnings) > 0 {
				t.Fatalf("got warnings %v, error %v, want neither", got.Warnings, err)
			}
			if text := errs(got.Errors); (text == "") != (tc.refused == "") || !strings.Contains(text, tc.refused) {
				t.Errorf("got %q, want %q", text, tc.refused)
			}
		})
	}
}

// A user who cannot read a Secret must not send its content to another server.
func TestEgressURLs(t *testing.T) {
	port := func(n int32) *int32 { return &n }
	to := func(host string, port *int32) References {
		u, path := References{Namespace: "team"}, field.NewPath("spec")
		u.Add(Secret, "s", path.Child("passwordSecret"))
		u.AddEgressURL("s", host, port, path.Child("host"))
		return u
	}
	bare := References{Namespace: "team"}
	bare.Add(Secret, "s", field.NewPath("spec", "passwordSecret"))
	const refusal = `spec.host: Forbidden: user "eve" cannot let pods use another server for Secret "s", because that requires permission to create pods in namespace team, or to get secrets s in namespace team`
	for name, tc := range map[string]struct {
		now, before References
		rights      []string
		refused     string
	}{
		"no change":                     {now: to("db", port(1)), before: to("db", port(1))},
		"another host":                  {now: to("evil", port(1)), before: to("db", port(1)), refused: refusal},
		"another port":                  {now: to("db", port(2)), before: to("db", port(1)), refused: refusal},
		"host added":                    {now: to("evil", nil), before: bare, refused: refusal},
		"host removed":                  {now: to("", nil), before: to("db", nil)},
		"of who may read it":            {now: to("moved", nil), before: to("db", nil), rights: []string{"get secrets s in namespace team"}},
		"permission for another Secret": {now: to("moved", nil), before: to("db", nil), rights: []string{"get secrets t in namespace team"}, refused: refusal},
		"of who may create pods":        {now: to("moved", nil), before: to("db", nil), rights: []string{"create pods in namespace team"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := shipped.Review(t.Context(), holder(tc.rights...), eve, tc.now, tc.before)
			if text := errs(got.Errors); err != nil || (text == "") != (tc.refused == "") || !strings.HasPrefix(text, tc.refused) {
				t.Errorf("got %q, %v, want %q", text, err, tc.refused)
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

// Objects of the manager are forbidden in every mode, for all users and in controllers.
func TestManagerObjectsAreAlwaysForbidden(t *testing.T) {
	everything := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, nil
	}
	for name, text := range map[string]string{
		"its account":                "spec: {serviceAccountName: odh-platform-operator-controller-manager, containers: []}",
		"its account, older name":    "spec: {serviceAccount: odh-platform-operator-controller-manager, containers: []}",
		"its certificate":            "spec: {containers: [{name: c, envFrom: [{secretRef: {name: odh-platform-operator-webhook-cert}}]}]}",
		"its certificate, a key":     "spec: {containers: [{name: c, env: [{name: X, valueFrom: {secretKeyRef: {name: odh-platform-operator-webhook-cert, key: ca.key}}}]}]}",
		"its certificate, a volume":  "spec: {containers: [], volumes: [{name: v, secret: {secretName: odh-platform-operator-webhook-cert}}]}",
		"its certificate, projected": "spec: {containers: [], volumes: [{name: v, projected: {sources: [{secret: {name: odh-platform-operator-webhook-cert}}]}}]}",
		"its token":                  "spec: {imagePullSecrets: [{name: odh-platform-operator-controller-manager-token-x}], containers: []}",
		"a label that it selects by": "{metadata: {labels: {platform.opendatahub.io/manager: odh-platform-operator}}, spec: {containers: []}}",
	} {
		for _, namespace := range []string{"home", ""} {
			for _, mode := range []Mode{Enforce, Warn, Off} {
				rules := shipped
				rules.Mode = mode
				uses := usesIn(t, namespace, text)
				got, err := rules.Review(t.Context(), everything, eve, uses, References{})
				if err != nil || len(got.Errors) == 0 {
					t.Errorf("%s, namespace %q, %s: admitted, %v", name, namespace, mode, err)
				}
				if rules.Forbidden(uses) == nil {
					t.Errorf("%s, namespace %q, %s: the controller lets it pass", name, namespace, mode)
				}
			}
		}
	}
}

func TestModeDeterminesErrorsAndWarnings(t *testing.T) {
	uses := usesIn(t, "team", "spec: {containers: [{name: c, image: a, securityContext: {privileged: true}}]}")
	for mode, want := range map[Mode]struct {
		errors, warnings int
		forbidden        bool
	}{Enforce: {3, 0, true}, Warn: {0, 3, false}, Off: {0, 0, false}} {
		rules := shipped
		rules.Mode = mode
		got, err := rules.Review(t.Context(), holder(), eve, uses, References{})
		if err != nil || len(got.Errors) != want.errors || len(got.Warnings) != want.warnings {
			t.Errorf("%s: unexpected errors %v or warnings %v, error %v", mode, got.Errors, got.Warnings, err)
		}
		if err := rules.Forbidden(uses); (err != nil) != want.forbidden {
			t.Errorf("%s: unexpected error: %v", mode, err)
		}
	}
}

// A failed access review does not allow a request.
func TestReviewsThatFail(t *testing.T) {
	away := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, errors.New("away")
	}
	if _, err := shipped.Review(t.Context(), away, eve, usesIn(t, "team", "spec: {containers: [{name: c, image: a}]}"), References{}); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("got error %v, want that of the review", err)
	}
}

// Each permission is reviewed once per request.
func TestPermissionsAreReviewedOnce(t *testing.T) {
	requests := map[string]int{}
	may := func(_ context.Context, _ authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		requests[describePermission(right)]++
		return true, nil
	}
	uses := usesIn(t, "team", "spec: {containers: [{name: c, image: a}, {name: d, image: b, envFrom: [{secretRef: {name: s}}]}]}")
	if _, err := shipped.Review(t.Context(), may, eve, uses, References{}); err != nil || len(requests) != 1 || requests["create pods in namespace team"] != 1 {
		t.Errorf("got reviews %v, error %v, want one for each permission", requests, err)
	}
}

// Thousands of invalid fields do not cause thousands of reviews, and references to objects of the manager are found among them in
// every mode.
func TestReviewsStopAfterMaxErrors(t *testing.T) {
	uses := References{Namespace: "home"}
	for i := range 1000 {
		uses.Add(Secret, fmt.Sprint("s-", i), field.NewPath("spec"))
	}
	uses.Add(Account, shipped.Account, field.NewPath("spec", "account"))
	for mode, want := range map[Mode]string{Enforce: "was not checked", Warn: "it is the ServiceAccount of the manager", Off: "it is the ServiceAccount of the manager"} {
		requests := 0
		may := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
			requests++
			return false, nil
		}
		rules := shipped
		rules.Mode = mode
		got, err := rules.Review(t.Context(), may, eve, uses, References{})
		if err != nil || requests > MaxErrors+1 || len(got.Errors) > MaxErrors+1 || len(got.Warnings) > MaxErrors || !strings.Contains(errs(got.Errors), want) {
			t.Errorf("%s: %d questions, %d errors, %d warnings, %v", mode, requests, len(got.Errors), len(got.Warnings), err)
		}
	}
}

// Pods comply with stricter levels than the default if the author sets no security context.
func TestRestrictedAllowsDefaultedSecurityContext(t *testing.T) {
	u := References{}
	u.AddPrivileges(Restricted, &metav1.ObjectMeta{}, &corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}, field.NewPath("spec"))
	if len(u.items) > 0 {
		t.Errorf("unexpected u.items: %v", u.items)
	}
	u.AddPrivileges(Restricted, &metav1.ObjectMeta{}, &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(false)}}, field.NewPath("spec"))
	if len(u.items) != 1 {
		t.Errorf("unexpected u.items: %v", u.items)
	}
}
