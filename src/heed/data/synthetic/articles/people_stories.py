"""Stories of people: rescues, prizes, finds and stolen things that come back."""

from heed.data.synthetic.articles.story import StoryKind

RESCUE = StoryKind(
    name="rescue",
    things=("hikers", "climbers", "tourists", "schoolchildren", "cyclists", "campers", "skiers"),
    jobs=("a mountain guide", "a forest ranger", "a farmer", "a helicopter pilot", "a nurse on holiday", "a hunter"),
    amounts=(4, 40, 1),
    causes=(
        ("thick fog had come down within minutes", "after thick fog came down"),
        ("a fallen tree had blocked the only path", "after a fallen tree blocked the path"),
        ("the group had followed a map that was thirty years old", "after they followed an old map"),
        ("a river had risen overnight", "after a river rose overnight"),
        ("the guide of the group had broken a leg", "after their guide broke a leg"),
        ("a sudden snowstorm had hidden every sign", "after a sudden snowstorm"),
        ("the batteries of all phones in the group were empty", "after their phones went dead"),
    ),
    lead=(
        "A group of {thing} is safe again near {where}.",
        "A worrying time has ended well for a group of {thing} near {where}.",
        "The {thing} who were lost near {where} have come back.",
        "A group of {thing} was found {day} in the hills near {where}.",
        "In the hills near {where}, {who} has brought a group of {thing} to safety.",
    ),
    who=(
        "They were found by {who}, {job}.",
        "They owe their lives to {who}, {job}.",
        "It was {who}, {job}, who heard their calls.",
    ),
    day=(
        "{last} reached the group {day}.",
        "The search came to an end {day}.",
        "The {thing} were led down to the town {day}, wet and tired.",
    ),
    many=(
        "The group had {many} members.",
        "In all, {many} people had been waiting for help.",
        "{last} counted {many} {thing}, and nobody was missing.",
    ),
    why=(
        "{Reason}.",
        "How the group got lost is now clear: {reason}.",
        "{last} soon heard what had happened: {reason}.",
    ),
    restatements=(
        "The {thing} had lost their way {why}.",
        "To lead {many} {thing} through the hills is not easy, even for {last}.",
        "The hills near {where} had never seen {many} {thing} in trouble at once.",
        "The {thing} thanked {who} and the people of {where}.",
    ),
    quotes=(
        '"They were cold, but they were singing," said {last}.',
        '"Anyone would have done the same," said {last}.',
        '"I simply followed the sound of a whistle," {last} said.',
    ),
    distractors=(
        "In {elsewhere}, {number} people had to be rescued last winter.",
        "{someone}, who runs an inn, brought hot soup.",
        "A helicopter from {elsewhere} could not take off.",
        "The hut where the {thing} had slept has only {fewer} beds.",
    ),
    summary=(
        "{who} rescued {many} {thing} near {where} {day} {why}.",
        "{Day}, {who} led {many} {thing} to safety near {where}. They had got lost {why}.",
        "A group of {many} {thing} got lost near {where} {why}. {who} found them {day}.",
    ),
)

PRIZE = StoryKind(
    name="prize",
    things=("chess tournament", "baking contest", "photo contest", "spelling contest", "singing contest", "quiz"),
    jobs=("a student", "a postal worker", "a dentist", "a plumber", "a bus driver", "a beekeeper"),
    amounts=(8, 120, 1),
    causes=(
        ("{last} had practised every night for a year", "after practising every night"),
        ("{last} had entered only because of a bet", "after entering only because of a bet"),
        ("the favourite had fallen ill before the final", "after the favourite fell ill"),
        ("a grandmother had taught {last} all the tricks", "with tricks learned from a grandmother"),
        ("the jury had changed its mind at the last minute", "after the jury changed its mind"),
        ("{last} kept calm when the lights went out", "by keeping calm when the lights went out"),
        ("one single point made the difference", "by a single point"),
    ),
    lead=(
        "The {thing} in {where} has a surprising winner.",
        "There was loud applause at the end of the {thing} in {where}.",
        "The {thing} in {where} is over.",
        "The {thing} in {where} was decided {day}.",
        "{who} has won the {thing} in {where}.",
    ),
    who=(
        "The first prize went to {who}, {job}.",
        "The winner is {who}, {job}.",
        "The cup is now in the hands of {who}, {job}.",
    ),
    day=(
        "The final was held {day}.",
        "{last} received the cup {day} from the mayor.",
        "The jury gave its decision {day}.",
    ),
    many=(
        "{last} was better than {many} rivals.",
        "There were {many} others who wanted the prize.",
        "In the end, {last} left {many} rivals behind.",
    ),
    why=(
        "{Reason}.",
        "There is a story behind the victory: {reason}.",
        "People will long talk about the final: {reason}.",
    ),
    restatements=(
        "{last} came first {why}.",
        "For {many} rivals, the {thing} ended with a handshake from {last}.",
        "Never before had the {thing} in {where} brought together {many} rivals.",
        "All of {where} is proud of {who} and of the {thing}.",
    ),
    quotes=(
        '"My hands were shaking the whole time," said {last}.',
        '"I will put the cup in the kitchen," said {last}.',
        '"I never thought that I would win anything," {last} said.',
    ),
    distractors=(
        "Second place went to {someone} from {elsewhere}.",
        "{someone}, who won last year, came only to watch.",
        "Tickets for the {number} seats had been sold within a day.",
        "Next year, {elsewhere} will be the host.",
    ),
    summary=(
        "{who} won the {thing} in {where} {day} {why}. There were {many} rivals.",
        "{Day}, {who} beat {many} rivals at the {thing} in {where} {why}.",
        "Against {many} rivals, {who} won the {thing} in {where} {why}. The final was {day}.",
    ),
)

FIND = StoryKind(
    name="find",
    things=("silver coins", "clay pots", "love letters", "oil paintings", "glass bottles", "gold rings", "maps"),
    jobs=("a student of history", "a farmer", "a plumber", "a schoolteacher", "a night guard", "a shepherd"),
    amounts=(4, 300, 1),
    causes=(
        ("{last} had wanted to dig a well", "while digging a well"),
        ("{last} had been repairing a kitchen floor", "while repairing a kitchen floor"),
        ("{last} had been looking for a lost dog", "while looking for a lost dog"),
        ("{last} had been planting apple trees", "while planting apple trees"),
        ("{last} had been clearing out a cellar", "while clearing out a cellar"),
        ("a storm had knocked over an old oak", "after a storm knocked over an oak"),
        ("{last} had slipped and fallen into a ditch", "after falling into a ditch"),
    ),
    lead=(
        "Old {thing} have been found in {where}.",
        "The museum in {where} has a new treasure: old {thing}.",
        "Experts are excited about the old {thing} from {where}.",
        "Old {thing} came to light in {where} {day}.",
        "{who} has found old {thing} in {where}.",
    ),
    who=(
        "The lucky finder is {who}, {job}.",
        "They were discovered by {who}, {job}.",
        "{who}, {job}, was the first to see them.",
    ),
    day=(
        "{last} saw the first of the {thing} {day}.",
        "The find was made {day}.",
        "{last} called the museum {day}, still out of breath.",
    ),
    many=(
        "In all, there are {many} pieces.",
        "{last} counted {many} of the {thing}.",
        "The experts have cleaned {many} {thing} so far.",
    ),
    why=(
        "{Reason}.",
        "It happened by chance: {reason}.",
        "Nobody had been searching for a treasure: {reason}.",
    ),
    restatements=(
        "{last} found the {thing} {why}.",
        "A collection of {many} {thing} would make any museum happy.",
        "The museum wants to show all {many} {thing} next year.",
        "Until {who} came along, nobody knew that {where} was hiding such {thing}.",
    ),
    quotes=(
        '"At first I took it for rubbish," said {last}.',
        '"I called my mother before anyone else," said {last}.',
        '"They belong to all of us," {last} said.',
    ),
    distractors=(
        "In {elsewhere}, {someone} once found {number} of the same kind.",
        "{someone}, an expert from {elsewhere}, will study the find for {number} weeks.",
        "The museum already owns {number} similar pieces.",
        "Treasure hunters from {elsewhere} have been seen in the fields.",
    ),
    summary=(
        "{who} found {many} old {thing} in {where} {day} {why}.",
        "{Day}, {who} came across {many} old {thing} in {where} {why}.",
        "A treasure of {many} old {thing} was discovered in {where} {day}. {who} found it {why}.",
    ),
)

THEFT = StoryKind(
    name="theft",
    things=("bronze statue", "violin", "silver cup", "church bell", "telescope", "grandfather clock", "oil painting"),
    jobs=("a police officer", "a night guard", "a retired judge", "a reporter", "a cleaner", "a truck driver"),
    amounts=(3, 90, 1),
    causes=(
        ("a dog had barked at a barn door all night", "after a dog barked at a barn door"),
        ("a child had given away the hiding place", "after a child gave away the hiding place"),
        ("the thief had sent a letter full of regret", "after the thief sent a letter of regret"),
        ("somebody had offered the {thing} at a flea market", "when it was offered at a flea market"),
        ("the water of a pond had dried up", "after a pond dried up"),
        ("tracks in the snow had led to a shed", "by following tracks in the snow"),
        ("a photo on the internet had shown the {thing} in a garden", "thanks to a photo on the internet"),
    ),
    lead=(
        "The stolen {thing} is back in {where}.",
        "The search for the {thing} from {where} is over.",
        "People in {where} are glad to have their stolen {thing} again.",
        "The {thing} that was stolen in {where} was found {day}.",
        "{who} has found the {thing} that was stolen in {where}.",
    ),
    who=(
        "It was found by {who}, {job}.",
        "The thanks of the town go to {who}, {job}.",
        "{who}, {job}, had never stopped looking for it.",
    ),
    day=(
        "{last} called the police {day}.",
        "The good news came {day}.",
        "{last} made the discovery {day}.",
    ),
    many=(
        "The {thing} had been missing for {many} days.",
        "For {many} days, nobody knew where the {thing} was.",
        "{last} had searched for {many} days.",
    ),
    why=(
        "{Reason}.",
        "The way to the hiding place was a strange one: {reason}.",
        "{last} had been lucky: {reason}.",
    ),
    restatements=(
        "{last} found the {thing} {why}.",
        "After {many} days, hardly anyone in {where} still hoped to see the {thing}.",
        "The place of the {thing} in {where} had been empty for {many} days.",
        "Without {who}, the {thing} might never have come back to {where}.",
    ),
    quotes=(
        '"I recognised it at once," said {last}.',
        '"I do not want any reward," said {last}.',
        '"It was heavier than I thought," {last} said.',
    ),
    distractors=(
        "A reward of {number} dollars had been offered by {someone}.",
        "In {elsewhere}, thieves took {number} bicycles in the same week.",
        "{someone} from {elsewhere} was questioned, but had nothing to do with it.",
        "The police had received {number} calls.",
    ),
    summary=(
        "{who} found the stolen {thing} of {where} {day} {why}. It had been missing for {many} days.",
        "After {many} days, the {thing} stolen in {where} was found {day}. {who} discovered it {why}.",
        "{where} has its stolen {thing} back after {many} days. {who} found it {day} {why}.",
    ),
)
