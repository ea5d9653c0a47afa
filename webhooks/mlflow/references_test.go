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

// Objects and settings that an MLflow gives to its pods require permissions of its author, or are forbidden to all authors. Settings of the
// server itself require none.
func TestReferencesOfMLflow(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub", Account: "manager"}
	denyAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	allowAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, nil
	}
	for name, tc := range map[string]struct {
		spec      string
		field     string // that is rejected; empty for none
		forbidden bool   // for all authors
	}{
		"the server itself":                      {spec: "{backendStoreUri: 'sqlite:////x', serveArtifacts: true, storage: {resources: {requests: {storage: 1Gi}}}, env: [{name: A, value: b}], replicas: 1}"},
		"default ServiceAccount":                 {spec: "{serviceAccountName: mlflow-sa}"},
		"ServiceAccount":                         {spec: "{serviceAccountName: robot}", field: "spec.serviceAccountName"},
		"ServiceAccount of the manager":          {spec: "{serviceAccountName: manager}", field: "spec.serviceAccountName", forbidden: true},
		"identity of a cloud provider":           {spec: "{serviceAccountAnnotations: {eks.amazonaws.com/role-arn: x}}", field: "spec.serviceAccountAnnotations[eks.amazonaws.com/role-arn]"},
		"image":                                  {spec: "{image: {image: x}}", field: "spec.image.image"},
		"pull Secret":                            {spec: "{imagePullSecrets: [{name: x}]}", field: "spec.imagePullSecrets[0].name"},
		"backend store URI":                      {spec: "{backendStoreUriFrom: {name: x, key: k}}", field: "spec.backendStoreUriFrom.name"},
		"read replica URI":                       {spec: "{readReplicaBackendStoreUriFrom: {name: x, key: k}}", field: "spec.readReplicaBackendStoreUriFrom.name"},
		"registry store URI":                     {spec: "{registryStoreUriFrom: {name: x, key: k}}", field: "spec.registryStoreUriFrom.name"},
		"environment variable":                   {spec: "{env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]}", field: "spec.env[0].valueFrom.secretKeyRef.name"},
		"envFrom with a Secret":                  {spec: "{envFrom: [{secretRef: {name: x}}]}", field: "spec.envFrom[0].secretRef.name"},
		"envFrom with a ConfigMap":               {spec: "{envFrom: [{configMapRef: {name: x}}]}", field: "spec.envFrom[0].configMapRef.name"},
		"Secret of the webhook certificate":      {spec: "{envFrom: [{secretRef: {name: odh-platform-operator-webhook-cert}}]}", field: "spec.envFrom[0].secretRef.name", forbidden: true},
		"CA bundle":                              {spec: "{caBundleConfigMap: {name: x}}", field: "spec.caBundleConfigMap.name"},
		"pod label":                              {spec: "{podLabels: {a: b}}", field: "spec.podLabels[a]"},
		"label of the manager":                   {spec: "{podLabels: {platform.opendatahub.io/manager: b}}", field: "spec.podLabels[platform.opendatahub.io/manager]", forbidden: true},
		"pod annotation":                         {spec: "{podAnnotations: {a: b}}", field: "spec.podAnnotations[a]"},
		"resource claim":                         {spec: "{resourceClaims: [{name: x, resourceClaimName: z}]}", field: "spec.resourceClaims[0]"},
		"resource claim of the artifacts server": {spec: "{artifactsServer: {resourceClaims: [{name: x, resourceClaimName: z}]}}", field: "spec.artifactsServer.resourceClaims[0]"},
		"volume name":                            {spec: "{storage: {volumeName: x}}", field: "spec.storage.volumeName"},
		"selected volume":                        {spec: "{storage: {selector: {matchLabels: {app: x}}}}", field: "spec.storage.selector"},
		"clone of a claim":                       {spec: "{storage: {dataSource: {kind: PersistentVolumeClaim, name: x}}}", field: "spec.storage.dataSource"},
		"restored snapshot":                      {spec: "{storage: {dataSourceRef: {kind: VolumeSnapshot, name: x}}}", field: "spec.storage.dataSourceRef"},
		"Secret in a volume":                     {spec: "{volumes: [{name: v, secret: {secretName: x}}]}", field: "spec.volumes[0].secret.secretName"},
		"claim in a volume":                      {spec: "{volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]}", field: "spec.volumes[0]"},
		"token in a volume":                      {spec: "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}", field: "spec.volumes[0].projected.sources[0].serviceAccountToken"},
		"webhook certificate in a volume":        {spec: "{volumes: [{name: v, secret: {secretName: odh-platform-operator-webhook-cert}}]}", field: "spec.volumes[0].secret.secretName", forbidden: true},
		"mount path":                             {spec: "{volumeMounts: [{name: v, mountPath: /opt}]}", field: "spec.volumeMounts[0]"},
		"priority class":                         {spec: "{priorityClassName: x}", field: "spec.priorityClassName"},
		"node selector and topology spread":      {spec: "{nodeSelector: {a: b}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}"},
		"privileged container":                   {spec: "{securityContext: {privileged: true}}", field: "spec", forbidden: true},
		"capability":                             {spec: "{securityContext: {capabilities: {add: [SYS_ADMIN]}}}", field: "spec", forbidden: true},
		"unconfined seccomp profile":             {spec: "{podSecurityContext: {seccompProfile: {type: Unconfined}}}", field: "spec", forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte("{metadata: {name: mlflow}, spec: " + tc.spec + "}"))
			if err != nil {
				t.Fatal(err)
			}
			for hasPermissions, access := range map[bool]pkgadmission.Access{false: denyAll, true: allowAll} {
				next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
				handler := pkgadmission.Guards{Rules: rules, Access: access}.Wrap(next, mlflowv1.GroupVersion.WithKind("MLflow").GroupKind(), referencesOf("opendatahub"))
				response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
				}})
				if want := tc.field == "" || hasPermissions && !tc.forbidden; response.Allowed != want {
					t.Fatalf("author with all permissions %t: got %+v, want allowed %t", hasPermissions, response.Result, want)
				}
				if !response.Allowed && response.Result.Details.Causes[0].Field != tc.field {
					t.Errorf("rejected field %s, want %s: %s", response.Result.Details.Causes[0].Field, tc.field, strings.TrimSpace(response.Result.Message))
				}
			}
		})
	}
}
