package v1beta1

// Switch turns something on or off.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

const (
	// Enabled is on.
	Enabled Switch = "Enabled"
	// Disabled is off.
	Disabled Switch = "Disabled"
)

// DefaultBackups is how many backups are kept where the spec does not say.
const DefaultBackups int32 = 7

// PostgresBackup makes backups of a generated database, on a PersistentVolumeClaim of their own. The operator never deletes that claim,
// whatever becomes of the registry.
type PostgresBackup struct {
	// schedule is a cron expression in UTC: minute, hour, day of the month, month and day of the week, or a macro such as @daily.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*/,?-]+ +){4}[0-9A-Za-z*/,?-]+)$')`,message="schedule must have five fields (minute, hour, day of the month, month and day of the week), such as '15 3 * * *', or be one of @hourly, @daily, @weekly, @monthly and @yearly"
	Schedule string `json:"schedule"`

	// keep is how many backups stay; the oldest are deleted after each new one. 7 if absent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Keep *int32 `json:"keep,omitempty"`

	// suspend stops new backups; those that exist stay.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// storage of the claim, 5Gi of the default class if absent. A larger size makes it grow, if its class allows that.
	// +optional
	Storage *PostgresStorage `json:"storage,omitempty"`
}
