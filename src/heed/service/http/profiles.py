"""Common words of languages in Latin script, roughly by frequency, to distinguish these languages."""

WORDS = {
    "en": """the of and to a in is that it for you was on are with as be he this have at not but from they his by we or she had what
        there an which all were do their if will one can has been would when who so no more about out my your them up said some time
        me into her than its could now then how our like just over know people only see because any good after very where work day
        should also even most made way new those did where these does here why again much well through back years still before must
        thank please hello yes today tomorrow yesterday want think going went come look make take need never always every something
        house water school book friend morning night world life little great man woman child children dog cat street city went
        reading writing walking playing standing wearing holding sitting young people group white black blue shirt front""",
    "de": """der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach
        wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde wenn
        ich kann du wir ihr ihre seine mein mich mir dich uns was wo wer warum heute morgen gestern ja nein bitte danke guten tag
        hier da dann doch schon immer wieder sehr gut gegen unter während zwei drei jahr jahre zeit haus wasser schule buch freund
        kein keine keinen diese dieser dieses können müssen soll sollte möchte machen macht gehen geht kommt kommen sagte sagen
        mann frau kind kinder hund katze straße stadt junge mädchen leute gruppe weiß schwarz hemd steht sitzt läuft spielt trägt
        während zwischen natürlich vielleicht welche etwas nichts alles viele vielen großen großer kleine kleinen leben welt""",
    "fr": """de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec son aux d l qu n c j
        cette ont ses mais comme on tout nous sa fait été aussi leur bien peut ces y deux vous je tu elle ils elles mon ma mes ton
        votre notre très sans être avoir même où quand quoi comment pourquoi parce oui non merci bonjour aujourd hui demain hier
        encore toujours jamais autre autres après avant entre chez ici là alors donc si faire dire voir aller venir peux veux suis
        sommes êtes était étaient avait avez avons jour année années temps maison eau école livre ami amie homme femme enfant enfants
        chien chat rue ville garçon fille gens groupe blanc noir bleu chemise debout assis porte joue marche petit petite grand grande
        quelque chose rien beaucoup peu depuis pendant contre sous vers plusieurs monde vie nouveau nouvelle""",
    "es": """de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque esta entre cuando
        muy sin sobre también me hasta hay donde quien desde todo nos durante todos uno les ni contra otros ese eso ante ellos e esto
        mí antes algunos qué unos yo otro otras otra él tanto esa estos mucho quienes nada muchos cual poco ella estar estas algunas
        algo nosotros es son fue era ser tiene tengo hace hacer puede puedo quiero gracias hola buenos días hoy mañana ayer aquí así
        bien año años tiempo casa agua escuela libro amigo hombre mujer niño niños perro gato calle ciudad gente grupo blanco negro
        camisa está están pequeño grande vida mundo siempre nunca cómo dónde después ahora""",
    "it": """di e che la il un a per in è una sono mi si lo ma ti le con i ha non da se ho come io del questo al qui ci della bene ne più
        tutto te gli o mio quando era no solo cosa chi me anche due fatto nel alla essere dei sua suo perché fare quello dove sei
        stato molto noi lui loro voi siamo abbiamo hanno così niente ancora mai sempre oggi domani ieri grazie ciao buongiorno sì
        anno anni tempo casa acqua scuola libro amico uomo donna bambino bambini cane gatto strada città gente gruppo bianco nero
        camicia piccolo grande vita mondo dopo prima delle degli nella sulla dal dalla quale questa questi quella quelli può posso
        vuoi voglio andare detto adesso allora qualcosa""",
    "pt": """de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser quando
        muito há nos já está eu também só pelo pela até isso ela entre era depois sem mesmo aos ter seus quem nas me esse eles estão
        você tinha foram essa num nem suas meu às minha têm numa pelos elas havia seja qual será nós tenho lhe deles essas esses
        obrigado olá bom dia hoje amanhã ontem aqui ali sim ano anos tempo casa água escola livro amigo homem mulher criança crianças
        cão gato rua cidade gente grupo branco preto camisa pequeno grande vida mundo sempre nunca onde agora então coisa fazer pode
        posso quero são não ação""",
    "nl": """de het een en van ik te dat die in je niet zijn is was op aan met als voor had er maar om hem dan zou of wat mijn men dit zo
        door over ze zich bij ook tot mij uit der daar haar naar heb hoe heeft hebben deze u want nog zal me zij nu ge geen omdat iets
        worden toch al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja eens hier wie werd altijd doch wordt wezen
        kunnen ons zelf tegen na reeds wil kon niets uw iemand geweest andere wij jij jullie vandaag morgen gisteren dank hallo goed
        dag jaar tijd huis water school boek vriend man vrouw kind kinderen hond kat straat stad jongen meisje mensen groep wit zwart
        hemd klein grote leven wereld nooit waar waarom""",
}
