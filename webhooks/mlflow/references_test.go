package mlflow

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// Objects that an MLflow references require the permissions of its author, except those of the server itself.
func TestReferencesOfMLflow(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub", Account: "manager"}
	nothing := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	everything := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, nil
	}
	for name, tc := range map[string]struct {
		spec string
		at   string // field that is refused; empty for none
		all  bool   // refused to all authors
	}{
		"the server itself":           {spec: "{backendStoreUri: 'sqlite:////x', serveArtifacts: true, storage: {resources: {requests: {storage: 1Gi}}}, env: [{name: A, value: b}], replicas: 1}"},
		"the account of the operator": {spec: "{serviceAccountName: mlflow-sa}"},
		"an account":                  {spec: "{serviceAccountName: robot}", at: "spec.serviceAccountName"},
		"the account of the manager":  {spec: "{serviceAccountName: manager}", at: "spec.serviceAccountName", all: true},
		"an identity of a cloud":      {spec: "{serviceAccountAnnotations: {eks.amazonaws.com/role-arn: x}}", at: "spec.serviceAccountAnnotations[eks.amazonaws.com/role-arn]"},
		"an image":                    {spec: "{image: {image: x}}", at: "spec.image.image"},
		"a pull Secret":               {spec: "{imagePullSecrets: [{name: x}]}", at: "spec.imagePullSecrets[0].name"},
		"a URI":                       {spec: "{backendStoreUriFrom: {name: x, key: k}}", at: "spec.backendStoreUriFrom.name"},
		"a URI of a replica":          {spec: "{readReplicaBackendStoreUriFrom: {name: x, key: k}}", at: "spec.readReplicaBackendStoreUriFrom.name"},
		"a URI of models":             {spec: "{registryStoreUriFrom: {name: x, key: k}}", at: "spec.registryStoreUriFrom.name"},
		"a variable":                  {spec: "{env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]}", at: "spec.env[0].valueFrom.secretKeyRef.name"},
		"variables":                   {spec: "{envFrom: [{secretRef: {name: x}}]}", at: "spec.envFrom[0].secretRef.name"},
		"variables of a ConfigMap":    {spec: "{envFrom: [{configMapRef: {name: x}}]}", at: "spec.envFrom[0].configMapRef.name"},
		"the key of the CA":           {spec: "{envFrom: [{secretRef: {name: odh-platform-operator-webhook-cert}}]}", at: "spec.envFrom[0].secretRef.name", all: true},
		"a CA bundle":                 {spec: "{caBundleConfigMap: {name: x}}", at: "spec.caBundleConfigMap.name"},
		"a label":                     {spec: "{podLabels: {a: b}}", at: "spec.podLabels[a]"},
		"a label of the manager":      {spec: "{podLabels: {platform.opendatahub.io/manager: b}}", at: "spec.podLabels[platform.opendatahub.io/manager]", all: true},
		"an annotation":               {spec: "{podAnnotations: {a: b}}", at: "spec.podAnnotations[a]"},
		"a device":                    {spec: "{resourceClaims: [{name: x, resourceClaimName: z}]}", at: "spec.resourceClaims[0]"},
		"a device of artifacts":       {spec: "{artifactsServer: {resourceClaims: [{name: x, resourceClaimName: z}]}}", at: "spec.artifactsServer.resourceClaims[0]"},
		"a volume":                    {spec: "{storage: {volumeName: x}}", at: "spec.storage.volumeName"},
		"a copy of a claim":           {spec: "{storage: {dataSource: {kind: PersistentVolumeClaim, name: x}}}", at: "spec.storage.dataSource"},
		"a copy of a snapshot":        {spec: "{storage: {dataSourceRef: {kind: VolumeSnapshot, name: x}}}", at: "spec.storage.dataSourceRef"},
		"a Secret in a volume":        {spec: "{volumes: [{name: v, secret: {secretName: x}}]}", at: "spec.volumes[0].secret.secretName"},
		"a claim in a volume":         {spec: "{volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]}", at: "spec.volumes[0]"},
		"a token in a volume":         {spec: "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}", at: "spec.volumes[0].projected.sources[0].serviceAccountToken"},
		"the key of the CA in one":    {spec: "{volumes: [{name: v, secret: {secretName: odh-platform-operator-webhook-cert}}]}", at: "spec.volumes[0].secret.secretName", all: true},
		"another place for a volume":  {spec: "{volumeMounts: [{name: v, mountPath: /opt}]}", at: "spec.volumeMounts[0]"},
		"a priority":                  {spec: "{priorityClassName: x}", at: "spec.priorityClassName"},
		"nodes":                       {spec: "{nodeSelector: {a: b}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}"},
		"a privileged server":         {spec: "{securityContext: {privileged: true}}", at: "spec", all: true},
		"a capability":                {spec: "{securityContext: {capabilities: {add: [SYS_ADMIN]}}}", at: "spec", all: true},
		"system calls of all kinds":   {spec: "{podSecurityContext: {seccompProfile: {type: Unconfined}}}", at: "spec", all: true},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte("{metadata: {name: mlflow}, spec: " + tc.spec + "}"))
			if err != nil {
				t.Fatal(err)
			}
			for holds, may := range map[bool]pkgadmission.Access{false: nothing, true: everything} {
				passes := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
				handler := pkgadmission.Guards{Rules: rules, Access: may}.Wrap(passes, mlflowv1.GroupVersion.WithKind("MLflow").GroupKind(), referencesOf("opendatahub"))
				response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
				}})
				if want := tc.at == "" || holds && !tc.all; response.Allowed != want {
					t.Fatalf("an author who holds everything (%t): %+v", holds, response.Result)
				}
				if !response.Allowed && response.Result.Details.Causes[0].Field != tc.at {
					t.Errorf("refused %s, want %s: %s", response.Result.Details.Causes[0].Field, tc.at, strings.TrimSpace(response.Result.Message))
				}
			}
		})
	}
}
