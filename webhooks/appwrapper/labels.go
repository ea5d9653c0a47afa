package appwrapper

import (
	"fmt"
	"maps"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// labelLength is the longest value of a label, in bytes.
const labelLength = 63

// labels returns the patch that gives a new object the default queue, where it names none, and the labels of its creator,
// whatever it says itself; nil when it has them. An error means that the object is no JSON object.
func labels(raw []byte, user authenticationv1.UserInfo, queue string) ([]author.Operation, error) {
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("reading the labels: %w", err)
	}
	have, wanted := object.Metadata.Labels, map[string]string{}
	maps.Copy(wanted, have)
	wanted[v1beta2.LabelUser], wanted[v1beta2.LabelUserID] = Sanitize(user.Username), Sanitize(user.UID)
	if _, given := have[v1beta2.LabelQueue]; !given && queue != "" {
		wanted[v1beta2.LabelQueue] = queue
	}
	if maps.Equal(have, wanted) {
		return nil, nil
	}
	return []author.Operation{{Operation: "add", Path: "/metadata/labels", Value: wanted}}, nil
}

// Sanitize makes a label value of a user's name or UID: cut to 63 bytes, every character that a label may not have
// replaced by "_", and "-", "_" and "." taken off both ends. Clients know the result, so it must not change.
func Sanitize(name string) string {
	if len(name) > labelLength {
		name = name[:labelLength]
	}
	var value strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			value.WriteRune(r)
		default:
			value.WriteByte('_')
		}
	}
	return strings.Trim(value.String(), "-_.")
}
