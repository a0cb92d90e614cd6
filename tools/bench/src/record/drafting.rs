//! The flags of drafting, without those of methods.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use outrider::args::MethodArgs;
use speculation::methods::{MethodSpec, OF_DRAFTING};

/// Who drafts, how much and in which shape.
#[derive(Clone, Debug)]
pub(super) struct DraftingArgs(pub(super) MethodSpec);

impl Args for DraftingArgs {
    fn augment_args(command: Command) -> Command {
        let is_of_drafting = |arg: &&Arg| {
            let mut settings = OF_DRAFTING.iter();
            settings.any(|setting| arg.get_id() == setting.name)
        };
        let all = MethodArgs::augment_args(Command::new("all"));
        command.args(all.get_arguments().filter(is_of_drafting))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DraftingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        MethodArgs::from_arg_matches(matches).map(|args| Self(args.0))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
