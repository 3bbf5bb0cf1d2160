//! Profiles of the AWS command line, which `object_store` does not read.
//!
//! Their files: <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::failure::RemoteFailure;

/// Credentials of a process are asked for anew so long before they expire.
const BEFORE_END: Duration = Duration::from_secs(300);

/// The settings of a section, by name.
type SectionSettings = BTreeMap<String, String>;

/// A profile of the user.
#[derive(Debug, Default)]
pub(super) struct AwsProfile {
    name: String,
    settings: SectionSettings,
}

/// Where credentials come from.
pub(super) enum KeySource {
    Keys(AwsCredential),
    Process(ProcessCredentials),
    /// From a way that hepfs does not know, in words.
    Unknown(String),
    None,
}

impl AwsProfile {
    /// Reads the profile of a name. `None`: that of `AWS_PROFILE`, or `default`, which need not be there.
    pub fn load(name: Option<&str>) -> Result<Self, RemoteFailure> {
        let of_environment = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        let named = name.map(str::to_owned).or(of_environment);
        let name = named.clone().unwrap_or_else(|| "default".to_owned());
        let in_config = if name == "default" { name.clone() } else { format!("profile {name}") };
        let mut settings = read("AWS_CONFIG_FILE", "config", &in_config)?;
        settings.extend(read("AWS_SHARED_CREDENTIALS_FILE", "credentials", &name)?);
        if named.is_some() && settings.is_empty() {
            return Err(RemoteFailure::Setting(format!("no profile {name} in the files of the AWS command line")));
        }
        Ok(Self { name, settings })
    }

    /// A setting such as `region`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Where its credentials come from.
    pub fn credentials(&self) -> KeySource {
        if let (Some(key), Some(secret)) = (self.get("aws_access_key_id"), self.get("aws_secret_access_key")) {
            let token = self.get("aws_session_token").map(str::to_owned);
            return KeySource::Keys(AwsCredential { key_id: key.to_owned(), secret_key: secret.to_owned(), token });
        }
        if let Some(command) = self.get("credential_process") {
            let command = words(command);
            return KeySource::Process(ProcessCredentials {
                profile: self.name.clone(),
                command,
                known: Mutex::default(),
            });
        }
        let ways = ["role_arn", "sso_session", "sso_start_url", "login_session"];
        match ways.into_iter().find(|way| self.get(way).is_some()) {
            Some(way) => KeySource::Unknown(format!(
                "profile {name} has {way}, for which hepfs cannot get credentials; another profile can have \
                 `credential_process = aws configure export-credentials --profile {name}`",
                name = self.name
            )),
            None => KeySource::None,
        }
    }
}

/// The section of a name in a file of the AWS command line; empty if the file lacks it.
fn read(variable: &str, file: &str, section: &str) -> Result<SectionSettings, RemoteFailure> {
    let path = match env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => dirs::home_dir().unwrap_or_default().join(".aws").join(file),
    };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(settings(&text, section)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(SectionSettings::new())
        }
        Err(error) => Err(RemoteFailure::Setting(format!("{}: {error}", path.display()))),
    }
}

/// The settings of a section. Indented lines are settings of a setting, none of which matters here.
fn settings(text: &str, section: &str) -> SectionSettings {
    let mut found = SectionSettings::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(name) = line.trim_end().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_inside = name.0.split_whitespace().eq(section.split_whitespace());
        } else if is_inside
            && !line.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            let comment = [" #", " ;", "\t#", "\t;"].into_iter().filter_map(|begin| value.find(begin)).min();
            let value = value[..comment.unwrap_or(value.len())].trim();
            found.insert(name.trim().to_lowercase(), value.to_owned());
        }
    }
    found
}

/// The words of a command, as a shell without variables splits it.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Credentials that a program of the user says.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html>
#[derive(Debug)]
pub(super) struct ProcessCredentials {
    profile: String,
    command: Vec<String>,
    known: Mutex<Option<(Arc<AwsCredential>, Option<SystemTime>)>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl ProcessCredentials {
    async fn get(&self) -> Result<Arc<AwsCredential>, RemoteFailure> {
        let mut known = self.known.lock().await;
        let soon = SystemTime::now() + BEFORE_END;
        if let Some((credential, end)) = &*known
            && end.is_none_or(|end| end > soon)
        {
            return Ok(credential.clone());
        }
        let failed = |reason: String| {
            RemoteFailure::Credentials(format!("credential_process of profile {}: {reason}", self.profile))
        };
        let (program, arguments) = self.command.split_first().ok_or_else(|| failed("it is empty".to_owned()))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        let output =
            tokio::task::spawn_blocking(move || command.output()).await.map_err(|error| failed(error.to_string()))?;
        let output = output.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(output.status.to_string()));
        }
        // The text of an error of serde_json would quote what it read.
        let said: Option<Said> = serde_json::from_slice(&output.stdout).ok().filter(|said: &Said| said.version == 1);
        let said = said.ok_or_else(|| failed("its output is not as AWS defines it".to_owned()))?;
        let end = said.expiration.map(|end| {
            let end = chrono::DateTime::parse_from_rfc3339(&end);
            end.map(SystemTime::from).map_err(|_| failed("its expiration is no time".to_owned()))
        });
        let credential =
            AwsCredential { key_id: said.access_key_id, secret_key: said.secret_access_key, token: said.session_token };
        let (credential, _) = known.insert((Arc::new(credential), end.transpose()?));
        Ok(credential.clone())
    }
}

impl CredentialProvider for ProcessCredentials {
    type Credential = AwsCredential;

    fn get_credential<'me, 'out>(
        &'me self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'out>>
    where
        'me: 'out,
        Self: 'out,
    {
        Box::pin(async move {
            self.get().await.map_err(|failure| object_store::Error::Generic { store: "S3", source: Box::new(failure) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[default]
region = eu-west-1   # where we are
# region = us-east-1
s3 =
  endpoint_url = nested
[profile  lab]
Region=us-west-2
endpoint_url = http://localhost:9000
credential_process = \"/opt/my tools/creds\" --profile 'a b' c\\ d
[lab]
region = not-this
";

    #[test]
    fn profiles_are_read_as_the_aws_command_line_reads_them() {
        let found = settings(CONFIG, "profile lab");
        let expected = [
            ("credential_process", "\"/opt/my tools/creds\" --profile 'a b' c\\ d"),
            ("endpoint_url", "http://localhost:9000"),
            ("region", "us-west-2"),
        ];
        assert_eq!(found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(), expected);
        assert_eq!(words(&found["credential_process"]), ["/opt/my tools/creds", "--profile", "a b", "c d"]);
        let default = settings(CONFIG, "default");
        assert_eq!(default["region"], "eu-west-1");
        assert!(!default.contains_key("endpoint_url") && settings(CONFIG, "other").is_empty());
        assert_eq!(words(r#" a"b c"d '' "\"" "#), ["ab cd", "", "\""]);
    }

    #[test]
    fn a_process_is_asked_until_its_credentials_serve() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let answers = |end: &str| {
            let said = format!(r#"{{"Version":1,"AccessKeyId":"k","SecretAccessKey":"s","SessionToken":"t"{end}}}"#);
            let script = format!("echo x >> {}; echo '{said}'", count.display());
            let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
            ProcessCredentials { profile: "lab".to_owned(), command, known: Mutex::default() }
        };
        let runtime = crate::remote::runtime::handle().unwrap();
        let asked = |credentials: &ProcessCredentials| {
            fs::write(&count, "").unwrap();
            for _ in 0..2 {
                let credential = runtime.block_on(credentials.get()).unwrap();
                assert_eq!(
                    (&*credential.key_id, &*credential.secret_key, credential.token.as_deref()),
                    ("k", "s", Some("t"))
                );
            }
            fs::read_to_string(&count).unwrap().lines().count()
        };
        assert_eq!(asked(&answers("")), 1);
        assert_eq!(asked(&answers(r#", "Expiration": "2100-01-01T00:00:00Z""#)), 1);
        assert_eq!(asked(&answers(r#", "Expiration": "2020-01-01T00:00:00+00:00""#)), 2);
        let wrong = ProcessCredentials { command: vec!["false".to_owned()], ..answers("") };
        let said = runtime.block_on(wrong.get()).unwrap_err().to_string();
        assert_eq!(said, "no credentials: credential_process of profile lab: exit status: 1");
    }
}
