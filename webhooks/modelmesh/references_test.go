package modelmesh

import (
	"context"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// A reference to a ResourceClaim requires permission to create pods.
func TestResourceClaimsRequirePermission(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub"}
	denyAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	references, err := referencesOfObject(rules, []byte(`{"spec":{"multiModel":true,"resourceClaims":[{"name":"gpu","resourceClaimName":"one"}]}}`), "team")
	if err != nil {
		t.Fatal(err)
	}
	result, err := rules.Review(t.Context(), denyAll, authenticationv1.UserInfo{Username: "u"}, references, pkgadmission.References{})
	if err != nil || len(result.Errors) != 1 || result.Errors[0].Field != "spec.resourceClaims[0]" {
		t.Errorf("errors %v, error %v, want one error for spec.resourceClaims[0]", result.Errors, err)
	}
}

// Publishing models and disabling authentication require permission to create pods. Ending a publication does not.
func TestPublicationRequiresPermission(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub"}
	denyAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	referencesFor := func(annotations string) pkgadmission.References {
		references, err := referencesOfObject(rules, []byte(`{"metadata":{"annotations":`+annotations+`},"spec":{"multiModel":true}}`), "team")
		if err != nil {
			t.Fatal(err)
		}
		return references
	}
	const route, routeWithAuth = `{"enable-route":"true"}`, `{"enable-route":"true","enable-auth":"true"}`
	for _, tc := range []struct {
		oldAnnotations, annotations string
		want                        []string
	}{
		{"{}", "{}", nil},
		{"{}", `{"enable-auth":"true"}`, nil},
		{"{}", routeWithAuth, []string{"metadata.annotations[enable-route]"}},
		{"{}", route, []string{"metadata.annotations[enable-route]", "metadata.annotations[enable-auth]"}},
		{routeWithAuth, route, []string{"metadata.annotations[enable-auth]"}},
		{routeWithAuth, `{"enable-route":"true","enable-auth":"True"}`, []string{"metadata.annotations[enable-auth]"}},
		{route, routeWithAuth, nil},
		{routeWithAuth, "{}", nil},
	} {
		result, err := rules.Review(t.Context(), denyAll, authenticationv1.UserInfo{Username: "u"}, referencesFor(tc.annotations), referencesFor(tc.oldAnnotations))
		var fields []string
		for _, fieldError := range result.Errors {
			fields = append(fields, fieldError.Field)
		}
		if err != nil || !slices.Equal(fields, tc.want) {
			t.Errorf("%s to %s: errors %v, error %v, want errors for %q", tc.oldAnnotations, tc.annotations, result.Errors, err, tc.want)
		}
	}
}
